"""`gpuplan completion`: scripts made from the parser itself, so they cannot fall behind it."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")
EPILOG = """\
examples:
  source <(gpuplan completion bash)
  gpuplan completion zsh > ~/.zfunc/_gpuplan
  gpuplan completion fish > ~/.config/fish/completions/gpuplan.fish
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(options: argparse.Namespace) -> int:
    print(script(options.shell), end="")
    return 0


def completions() -> dict[str, list[str]]:
    """Verb → its options and fixed arguments, sorted."""
    from gpuplan.cli.main import build_parser

    subparsers = next(
        a
        for a in build_parser()._actions  # noqa: SLF001 - argparse has no public way to list them
        if isinstance(a, argparse._SubParsersAction)  # noqa: SLF001
    )
    table: dict[str, list[str]] = {}
    for verb, parser in subparsers.choices.items():
        words: set[str] = set()
        for action in parser._actions:  # noqa: SLF001
            words.update(o for o in action.option_strings if o.startswith("--"))
            if not action.option_strings:
                words.update(map(str, action.choices or ()))
        table[verb] = sorted(words)
    return table


def script(shell: str) -> str:
    from gpuplan.cli.main import VERBS

    table = completions()
    if shell == "bash":
        cases = "\n".join(f"    {v}) words={' '.join(w)!r} ;;" for v, w in table.items())
        return _BASH.format(verbs=" ".join(table), cases=cases)
    if shell == "zsh":
        cases = "\n".join(f"    {v}) compadd -- {' '.join(w)} ;;" for v, w in table.items())
        return _ZSH.format(verbs=" ".join(table), cases=cases)
    lines = ["complete -c gpuplan -n __fish_use_subcommand -f"]
    for verb, options in table.items():
        lines.append(f"complete -c gpuplan -n __fish_use_subcommand -a {verb} -d {VERBS[verb]!r}")
        seen = f"'__fish_seen_subcommand_from {verb}'"
        for word in options:
            kind = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c gpuplan -n {seen} {kind}")
    return "\n".join(lines) + "\n"


_BASH = """\
_gpuplan() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{verbs} --help --version' -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
}}
complete -o filenames -F _gpuplan gpuplan
"""
_ZSH = """\
#compdef gpuplan
_gpuplan() {{
  if (( CURRENT == 2 )); then
    compadd -- {verbs} --help --version
    return
  fi
  case $words[2] in
{cases}
  esac
  _files
}}
_gpuplan "$@"
"""
