"""Where the parts of a rule stand in ``rules``, and the instructions of plans, actions and schedules."""

# ---- a rule
ATOMS = 0  # how many
PRIMITIVES = 1
VARIABLES = 2
BOUND = 3  # how many of them actions need; these come first
ACTIONS = 4  # where their instructions are; 0: none
DELETIONS = 5
MATCHED = 6  # how often
ATOM_LIST = 7  # where the addresses of atoms are
PRIMITIVE_LIST = 8
IS_LEFT_OUT = 9  # whether it had too many matches
RULE_WORDS = 10

# ---- an atom: a table, and what each column is: a variable, or the register of a constant
TABLE = 0
MARK = 1  # the first row that the rule has not seen
STARTS = 2  # where the plans for its news are, by the atom that they begin with
COLUMNS = 3  # then, for each column again, rows found by it, as `measured` notes them; 0: not measured

# ---- a primitive of a query
OPERATION = 0
OUTPUT = 1  # a variable or constant; -1: none
FUNCTION = 2
TARGET = 3
SORT = 4
COUNT = 5  # of arguments
IS_CHEAP = 6
IS_PLACED = 7
ARGUMENTS = 8

# ---- instructions of plans
SCAN = 1  # table, part, mark, count; for each column whether it is compared, column, register
INDEX = 2  # table, part, mark, column, register, count, how often it began, rows it found; as above
LOOK = 3  # table, part, mark, use of the output, register, inputs
COMPUTE = 4  # operation, use of the result, register, function, target, sort, count, arguments
MATCH = 5

# ---- parts of a table
ALL = 0
SEEN = 1
UNSEEN = 2

# ---- uses of a value
IGNORED = 0
KEPT = 1
COMPARED = 2

# ---- instructions of actions
END = 0
MAKE = 11  # table, register of the class or -1, inputs
SET = 12  # table, values
UNION = 13
SUBSUME = 14  # table, inputs
DELETE = 15
FILL = 16  # table, container: how often each element is in it
CALCULATE = 17  # operation, register, function, target, sort, count, arguments

# ---- steps of a schedule, three words each
STOP = 0
RUN = 1  # rule set, matches a rule may have or 0
REPEAT = 2
AGAIN = 3  # where to go back to, how often or 0
STEP_WORDS = 3
