"""What the solver does for a better packing: all that trades time for cost.

Every packing that comes out is right and every bound holds, whatever stands here: more finds a
cheaper packing or a nearer bound later, less ends sooner. `bench/packing/least_cost.py` measures
what they are worth, and tests/fleet/test_packing_effort.py that they are worth something. What
decides which answers are right, or what is said of them, stands where it is used.
"""

from __future__ import annotations

# Whole answers
SMALL = 200  # items, up to which every column of the model is an integer and two packings compete
MOST_WORK, LARGE = 200_000, 20_000  # places looked at by ruin and recreate, up to so many items
SPARING = 8  # part of that work for fewer GPUs
START = 4  # part of it for a packing from which contents are looked for
PATIENCE = 2  # part of it without gain after which it ends
LEFT_ROUNDS = 2  # models for what found no place
LEFT_SMALL = 200  # items that found none, up to which such a model has whole columns alone
MOST_CHANGES = 12  # packings of single changes, where workloads have several ways

# Places that are tried
INSERT_LOOKS = 40  # GPUs or nodes in one state before the next
DEAL_LOOKS = 30  # nodes that refuse before a unit or an item is left over
SEAT_LOOKS = 40  # contents that are compared for a node
EXCHANGE_LOOKS = 8  # of those looked at for one that is asked to go elsewhere
LEFT_TRIES, CLOSE_TRIES = 100, 10  # others asked to make room
LEFT_WORK, MANY_LEFT_WORK, MANY = 5000, 500, 3000  # questions over all leftovers; of many items
PASSES = 2  # over all hosts, to give some back
RUIN_PRICES = (0.75, 1.35)  # of what a host type seems to cost while hosts are packed anew
SPARE_PRICES = (0.25, 4.0)  # the same while workloads change places for room
MOST_SPANS = 24  # sets of GPUs for a workload on several nodes, best first
MOST_SHARES = 2_000  # divisions of it between nodes

# Linear models
MOST_ITERATIONS = 1_000_000  # of the simplex method on one linear program: the largest took 2,000
MOST_LOOKS = 4_000  # of a search: the longest took 100
GAP, SMALL_GAP = 4e-3, 1e-4  # of the model's objective that may be left
NODES, SMALL_NODES, WAY_NODES = 10, 30, 200  # of the search over it
CUT_ROUNDS = 6  # answers that rows are added for
CUT_SMALL = 300  # items, up to which all rows of spread groups are there from the start
DUAL_STEPS = range(1, 9)  # of dual feasible functions
MOST_LAYOUTS = 400  # beyond it a mode is modelled by its units alone

# Contents of whole nodes
ENOUGH = 1.0005  # of the bound: contents that come then gain less than rounding loses
# Starts: whether no hosts but those of the outline are had, and the part of the fractional contents
# that is rounded up in one step. Each has the contents found before it.
STARTS, FEW = ((True, 0.15), (False, 0.5)), 2000  # both up to so many items, else the first
LEAST_GAIN = 1e-4  # USD per hour that a content has to gain
CONTENT_WORK = 50_000  # columns of knapsacks that are solved, once for all and in each choice
STILL = 0.9  # of a content's worth that must be left where it is rounded up beside others
CONTENT_GAP, CONTENT_NODES = 1e-3, 100  # of the search for one content
PROOF_GAP, PROOF_NODES = 1e-5, 200  # of the search that proves that there is no better

# Fleets that are full
YIELDING_HOSTS = 3_000  # that are emptied of who counts less, in all
PREEMPTED_HOSTS = 200  # that are emptied of lower priorities, for one item
LACKING_HOSTS = 2_000  # that are asked what they lack


def ruin_work(items: int) -> int:
    """Places looked at by ruin and recreate; on very large fleets it gains too little."""
    return MOST_WORK if items <= LARGE else 0


def spare_work(usual: int) -> int:
    """The part of ruin and recreate's work that is spent for fewer GPUs."""
    return usual // SPARING


def first_work(usual: int, items: int, *, contents: bool) -> int:
    """The part of it for the first packing; all where no contents follow, and of small fleets."""
    return usual // START if contents and items > SMALL else usual


def left_tries(left: int, items: int) -> int:
    """Others that each of `left` leftovers asks to make room."""
    work = LEFT_WORK if items <= MANY else MANY_LEFT_WORK
    return min(LEFT_TRIES, work // max(left, 1))


def close_tries(items: int) -> int:
    """Others that each item of a host that is given back asks to make room."""
    return CLOSE_TRIES if items <= MANY else 0


def searched(*, whole: bool, ways: bool = False) -> tuple[float, int]:
    """The gap of a model and the nodes of its search; of one with `whole` columns alone more of
    both, and most nodes where workloads have several `ways`."""
    if not whole:
        return GAP, NODES
    return SMALL_GAP, WAY_NODES if ways else SMALL_NODES


def rounded_at_once(fractional: int, part: float) -> int:
    """Contents of so many that are rounded up before others are looked for."""
    return max(1, int(fractional * part))


def starts(items: int) -> tuple[tuple[bool, float], ...]:
    """See `STARTS`."""
    return STARTS if items <= FEW else STARTS[:1]
