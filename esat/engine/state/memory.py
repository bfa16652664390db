"""The arrays of an e-graph, and what stands where in them.

Functions that run out of room note it in ``state[FULL]`` and give up; whoever called the machine gives it
larger arrays, and it does the same thing again. So nothing is taken away before there is room for what takes
its place.
"""

from __future__ import annotations

from esat.base.native import Arrays, Floats, Integers
from esat.base.records import record


@record(frozen=True)
class MachineMemory(Arrays):
    """All there is of an e-graph and its rules.

    Attributes
    ----------
    state
        Counters; what each is for is told by the constants below.
    tables
        ``TABLE_WORDS`` words a table.
    sorts
        What each sort of containers holds: ``NUMBERS``, ``IDS``, or it is a ``PAIR``.
    ids
        ``ID_WORDS`` words for each class and each container, which share one numbering.
    cells
        Rows, hash indexes, elements of containers, and lists of what an id occurs in; never given back.
    rules
        Rules, and sets of them.
    plans
        Instructions of the plans made so far.
    registers, numbers
        Variables of the rule that runs, arguments and results of primitives, constants; as integers, and the
        same memory as floats.
    matches
        What the rules of an iteration found: the rule, then its variables.
    stack
        Where a search stands.
    scratch
        Room for the elements of containers that are being made.
    schedule
        What to run.
    log
        What the actions of matches did, while ``state[LOG]`` is not 0; :mod:`esat.engine.state.contents`
        reads it.
    """

    state: Integers
    tables: Integers
    sorts: Integers
    ids: Integers
    cells: Integers
    rules: Integers
    plans: Integers
    registers: Integers
    numbers: Floats
    matches: Integers
    stack: Integers
    scratch: Integers
    schedule: Integers
    log: Integers


# ---- state
ID_COUNT = 0
CELLS = 1  # the first free cell
PLANS = 2
MATCHES = 3
TOP = 4  # of scratch
CHANGED = 5  # whether the iteration changed anything
FULL = 6  # an array that is too small
CONFLICT = 7  # 1 + the table of a row that would have had two values
WORK = 8  # 1 + the first id whose rows have to be rebuilt
SLOT = 9  # where the row that was looked up, or one with its key, belongs
ACTING = 10  # whether actions run: constructors make rows then
SEARCHED = 11  # plans run
FOUND = 12  # matches
ITERATIONS = 13
UNIONS = 14
PHASE = 15  # of an iteration: search, deletions, actions, rebuilding
AT_RULE = 16
AT_MATCH = 17
AT_STEP = 18  # of the schedule
DEPTH = 19  # of repeated steps
MATCH_LIMIT = 20  # for all rules of a call
RULE_FOUND = 21  # matches of the rule that runs
RULE_LIMIT = 22
VISITED = 23  # rows looked at
PAUSE_AT = 24  # rows looked at when the call is to return
CONTAINER_SLOTS = 25
CONTAINER_MASK = 26
CONTAINER_COUNT = 27
LEFT_OUT = 28  # rules with more matches than the limit of one
TERMS = 29  # rows of constructors
TERM_LIMIT = 30
EXCEEDED_LIMIT = 31  # whether a rule had more matches than were left
MAKER = 32  # what rows are noted to be made by: ORIGIN_STEP times the address of a rule; 0: none
LOG = 33  # the first free word of the log; 0: nothing is logged
GIVE_UP_AT = 34  # rows looked at when a search is to give up its plan
REPEATED = 35  # two words for each depth of repetition: whether it changed anything, how often it ran
DEEPEST = 15  # repetitions within each other, less one
STATE_WORDS = REPEATED + 2 * DEEPEST

# ---- what may be full
IDS_FULL = 1
CELLS_FULL = 2
PLANS_FULL = 4
MATCHES_FULL = 8
SCRATCH_FULL = 16
LOG_FULL = 32

# ---- what the log holds, each with its operands
MATCHED_RULE = 1  # address of a rule, variables, their values; what follows its actions did
UNITED = 2  # two ids, and whether they are those of rows with equal inputs
CONGRUENT = 1
ROW_OF = 3  # table, row that an action asked for, its output
EVENT_WORDS = 4

# ---- a table
INPUTS = 0
WIDTH = 1  # with the output, if it has one
MERGE = 2
IS_CONSTRUCTOR = 3
ROWS = 4  # the cell where rows begin: a flag, then the values of each
COUNT = 5  # rows, with those that are dead
CAPACITY = 6
LIVE = 7
SLOTS = 8  # 1 + row, by the hash of the inputs; twice the capacity
KINDS = 10  # of each column
WIDEST = 64
INDEXES = KINDS + WIDEST  # of each column INDEX_WORDS
INDEX_WORDS = 3
TABLE_WORDS = INDEXES + INDEX_WORDS * WIDEST

# ---- an index of a table by a column
HEADS = 0  # pairs of a value and 1 + the latest row with it; 0: no index
NEXT = 1  # 1 + the row before, for each row
KEYS = 2  # values

# ---- kinds of columns
NUMBER = 0
CLASS = 1
CONTAINER = 2

# ---- the first word of a row: flags, and ORIGIN_STEP times the address of the rule that made it
DEAD = 1
SUBSUMED = 2
FLAGS = 3
ORIGIN_STEP = 4

# ---- how a function merges
OLD = 0
NEW = 1
MAXIMUM = 2
MINIMUM = 3
UNITE = 4
CONFLICTING = 5
UNION_OF_BITS = 6
INTERSECTION_OF_BITS = 7

# ---- an id
PARENT = 0
SORT = 1  # 0: a class; else 1 + the sort of a container
ITEMS = 2
LENGTH = 3
OCCURRENCES = 4  # 1 + the cell of a list: the next one, table, row
HOLDERS = 5  # 1 + the cell of a list: the next one, container
NEXT_WORK = 6
ID_WORDS = 8

# ---- sorts of containers
NUMBERS = 0
IDS = 1
PAIR = 2

# ---- registers
ARGUMENTS = 256
MOST_ARGUMENTS = 64
INNER_ARGUMENTS = ARGUMENTS + MOST_ARGUMENTS
ROW = INNER_ARGUMENTS + MOST_ARGUMENTS  # the row that is looked up or put
RESULT = ROW + WIDEST
CONSTANTS = RESULT + 4

_HALF = 0x7FFFFFFF


def mixed(hash: int, value: int) -> int:
    """A hash of a hash and one more value; no product exceeds 64 bits."""
    low = (hash ^ value ^ (value >> 31)) & _HALF
    product = low * 0x45D9F3B
    return (product ^ (product >> 24)) & 0x3FFFFFFFFFFFFFF


def has_room(m: MachineMemory, cells: int) -> bool:
    """Whether there are so many free cells; if not, that is noted."""
    if m.state[CELLS] + cells > len(m.cells):
        m.state[FULL] |= CELLS_FULL
        return False
    return True


def has_log_room(m: MachineMemory, words: int) -> bool:
    """Whether so many words can be logged, if any are; if not, that is noted."""
    if m.state[LOG] != 0 and m.state[LOG] + words > len(m.log):
        m.state[FULL] |= LOG_FULL
        return False
    return True


def log_event(m: MachineMemory, kind: int, first: int, second: int, third: int) -> None:
    """Log an event, if any are; there must be room."""
    at = m.state[LOG]
    if at != 0:
        m.log[at] = kind
        m.log[at + 1] = first
        m.log[at + 2] = second
        m.log[at + 3] = third
        m.state[LOG] = at + EVENT_WORDS


def taken(m: MachineMemory, cells: int) -> int:
    """The first of so many cells, all zero; there must be room."""
    at = m.state[CELLS]
    m.state[CELLS] = at + cells
    for cell in range(at, at + cells):
        m.cells[cell] = 0
    return at
