"""What is certain enough to be said; nothing is a good answer."""

from dataclasses import dataclass

from contextgraph.model import Methodology, MethodologyStatus, ScopeLevel, SignatureLevel


@dataclass(frozen=True, slots=True)
class Gate:
    """Least evidence (0 to 1), judged before fusion: nonsense also has a first rank.

    The defaults are the conservative rule of a memory that was not calibrated: bad advice costs
    more than none. For cases they are the overlap from which, on linked issues of 53 repositories,
    the first case shown was a related one about every second time (docs/retrieval.md).
    """

    recovery: float = 0.5
    case_in_repo: float = 0.06
    case_elsewhere: float = 0.20
    similar_in_repo: float = 0.30
    repositories_elsewhere: int = 2
    other_names: bool = False
    runs_for_warning: int = 3
    runs_for_methodology: int = 3
    success_for_methodology: float = 0.25

    def admits_recovery(
        self,
        evidence: float,
        level: SignatureLevel,
        scope: ScopeLevel,
        *,
        repositories: int,
        on_topic: bool,
        about_another: bool,
    ) -> bool:
        """Whether a recovery of this *evidence* may be shown; a shared family alone never is.

        Nor is one of an error *about another* name, but where *other_names* are wanted. One of
        another repository must be *on_topic* or have worked in several *repositories*: what was
        changed in the code of one rarely helps in another.
        """
        if evidence < self.recovery or level is SignatureLevel.FAMILY:
            return False
        if about_another and not self.other_names:
            return False
        return scope is ScopeLevel.REPO or on_topic or repositories >= self.repositories_elsewhere

    def admits_case(
        self, task_overlap: float, scope: ScopeLevel, *, same_file: bool, similarity: float = 0.0
    ) -> bool:
        """Whether a past run may be shown whose task is so much alike, or that was at this file.

        *similarity* is the cosine of the vectors, where they were compared.
        """
        if scope is ScopeLevel.REPO and (same_file or similarity >= self.similar_in_repo):
            return True
        least = self.case_in_repo if scope is ScopeLevel.REPO else self.case_elsewhere
        return task_overlap >= least

    def admits_methodology(self, methodology: Methodology) -> bool:
        """Whether a methodology may be shown: never one that harmed.

        One that is active may; while on probation, one for all repositories and all messages needs
        more runs than one for this repository or for what this message is about, and a better
        success rate than chance gives.
        """
        if methodology.status in (MethodologyStatus.QUARANTINED, MethodologyStatus.RETIRED):
            return False
        if methodology.status is MethodologyStatus.ACTIVE:
            return True
        narrow = methodology.keyword or methodology.repo is not None
        if narrow:
            return True
        often = methodology.success_rate >= self.success_for_methodology
        return often and methodology.support >= self.runs_for_methodology


CONSERVATIVE = Gate()
