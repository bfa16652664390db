"""Why a program is what it is, told to the user."""
