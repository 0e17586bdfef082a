"""Shows what the sizes of encrypted messages give away about the people behind an IoT gateway.

Captures become streams of Arrow record batches (`records`, `commands`, `identify`) or results (`survey`, `learn`,
`evaluate`, `compare`, `audit`, `pad`, `profile`, `detect`); stages can be written in Python (`Stage`, `Pipeline`,
`serve`). For audits of your own gateways, and for research with the consent of the people whose traffic it is.
"""

from . import _native
from ._errors import CutError, Error, Notice, UsageError
from ._files import Model, Profile
from ._frames import Command, Frame, Record, read_frames, write_frames
from ._reports import (
    Audit,
    Comparison,
    Deviations,
    Evaluation,
    Figure,
    Padding,
    Report,
    Simulation,
    Survey,
    audit,
    compare,
    detect,
    evaluate,
    learn,
    pad,
    plot,
    profile,
    simulate,
    survey,
)
from ._stages import Pipeline, Stage, serve
from ._streams import Stream, commands, identify, records

__version__ = _native.VERSION

# fmt: off
__all__ = [
    "Audit", "Command", "Comparison", "CutError", "Deviations", "Error", "Evaluation", "Figure", "Frame", "Model",
    "Notice", "Padding", "Pipeline", "Profile", "Record", "Report", "Simulation", "Stage", "Stream", "Survey",
    "UsageError", "audit", "commands", "compare", "detect", "evaluate", "identify", "learn", "pad", "plot", "profile",
    "read_frames", "records", "serve", "simulate", "survey", "write_frames",
]
