"""Runs the statements of ``neardup_setup``, which add a search or a rule to a table in use."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

STATEMENTS = (
    "SELECT statement FROM neardup_setup({}, {}, {}, {}, {}, {}) WHERE part = {} ORDER BY step"
)

# These take a lock that other sessions wait for. The statement waits for running transactions, and
# new ones wait behind it. The other statements let writers continue, and may take long.
_LOCKING = ("ALTER TABLE", "CREATE OR REPLACE TRIGGER", "DROP TRIGGER")
_LOCK_NOT_AVAILABLE = "55P03"


def run(
    statements: Iterable[str],
    execute: Callable[[str], Any],
    lock_timeout: str,
    attempts: int,
) -> None:
    """Executes each statement outside a transaction. Repeats a statement whose lock is not free."""
    for statement in statements:
        if not statement.startswith(_LOCKING):
            execute(statement)
            continue
        for attempt in range(1, attempts + 1):
            execute(f"SET lock_timeout = '{lock_timeout}'")
            try:
                execute(statement)
                break
            except Exception as error:
                if attempt == attempts or _sqlstate(error) != _LOCK_NOT_AVAILABLE:
                    raise
                time.sleep(1)
            finally:
                execute("RESET lock_timeout")


def _sqlstate(error: BaseException | None) -> str | None:
    """The SQLSTATE of the driver's error, which Django and SQLAlchemy wrap."""
    while error is not None:
        code = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
        if code:
            return str(code)
        error = getattr(error, "orig", None) or error.__cause__
    return None
