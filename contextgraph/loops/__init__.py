"""Loops of an agent: whether it is in one, and what led out of such loops before."""

from contextgraph.loops.detector import LoopDetector

__all__ = ["LoopDetector"]
