"""A file that became the user's own: what a later stack may add to it."""

from __future__ import annotations

from gpuplan.render.seeds import refreshed

SEED = """\
# Settings of the Pulumi stack `dev`: yours.
# - The cluster, by its kubectl context:
#     pulumi config set context CONTEXT
# - The UID of its namespace, which is
#   proven first:
#     pulumi config set clusterUid CLUSTERUID
# - HF_TOKEN of chat:
#     pulumi config set --secret hfToken
config: {}
"""


def test_a_hint_that_is_there_is_not_said_twice() -> None:
    assert refreshed(SEED, SEED) == SEED


def test_a_new_setting_gets_its_hint_and_all_else_stays() -> None:
    own = "# mine\nconfig:\n  chat:context: rack-7\n  # a secret\n  chat:hfToken: {secure: v1}\n"
    hint = "".join(line + "\n" for line in SEED.splitlines()[3:6])
    assert "clusterUid" in hint
    head, rest = own.split("\n", 1)
    assert refreshed(own, SEED) == f"{head}\n{hint}{rest}"
    assert refreshed(refreshed(own, SEED), SEED) == refreshed(own, SEED)


def test_a_file_without_comments_gets_them_at_its_head() -> None:
    own = "config:\n  chat:context: a\n  chat:clusterUid: b\n"
    assert refreshed(own, SEED) == (
        "# - HF_TOKEN of chat:\n#     pulumi config set --secret hfToken\n" + own
    )


def test_a_longer_name_is_another_setting() -> None:
    own = "config: {hfTokenOld: x, clusterUid: y, context: z}\n"
    assert "--secret hfToken\n" in refreshed(own, SEED)


def test_other_seeds_stay() -> None:
    assert refreshed("mine\n", "# a comment\n* text\n") == "mine\n"
