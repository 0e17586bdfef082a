"""What all tasks of a run know."""

from dataclasses import dataclass

from program import ProgramPlace


@dataclass(frozen=True)
class Settings:
    """The options of a run, as its tasks need them."""

    program: ProgramPlace
    gateways: list[str]
    models: list[str]
    # Options of stages, as arguments of the program.
    stage_options: list[str]
    # Whether a damaged capture is set aside; otherwise it ends the job.
    quarantines: bool
    # The folder in which parts wait to be published.
    parts: str
