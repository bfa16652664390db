"""The one signal that nodes do not fit one kernel."""


class UnsupportedError(Exception):
    """The nodes cannot be lowered to one kernel; fusion asks before it builds such a group."""
