"""Loops: is the agent going round in circles, and what led out before."""

from contextgraph.loops.detector import LoopDetector

__all__ = ["LoopDetector"]
