"""Where we mean to differ from the bridge: each difference with its reason, and what ours gives in which scenario.

docs/compatibility.md tells the same to people; a test keeps the ids equal.
"""

from parity.differences.answers import ANSWERS
from parity.differences.boards import BOARDS
from parity.differences.difference import Difference
from parity.differences.digests import DIGESTS
from parity.differences.questions import QUESTIONS
from parity.differences.waits import WAITS

__all__ = ["DIFFERENCES", "Difference"]

DIFFERENCES = (*WAITS, *BOARDS, *DIGESTS, *ANSWERS, *QUESTIONS)
