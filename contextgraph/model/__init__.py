"""The values of the memory, as frozen dataclasses."""

from importlib import import_module

from contextgraph.lazy import TYPE_CHECKING

if TYPE_CHECKING:
    from contextgraph.model.bundle import (
        SOURCE as SOURCE,
        AdviceRecord as AdviceRecord,
        Bundle as Bundle,
        EmbeddedBundle as EmbeddedBundle,
        EmbeddedRun as EmbeddedRun,
        Embeddings as Embeddings,
        Exposure as Exposure,
        FailurePattern as FailurePattern,
        HealthCheck as HealthCheck,
        KnownSource as KnownSource,
        Learned as Learned,
        LearnReceipt as LearnReceipt,
        LearnStatus as LearnStatus,
        MemoryCounts as MemoryCounts,
        MistakePattern as MistakePattern,
        Near as Near,
        SeenContext as SeenContext,
        ShownItem as ShownItem,
        ShownTally as ShownTally,
        Space as Space,
        Verdict as Verdict,
        node_text as node_text,
        run_text as run_text,
    )
    from contextgraph.model.context import (
        Agreement as Agreement,
        ChannelRank as ChannelRank,
        CommandHistory as CommandHistory,
        CommandRecord as CommandRecord,
        Effect as Effect,
        Environment as Environment,
        ErrorQuestion as ErrorQuestion,
        ErrorSteps as ErrorSteps,
        ErrorTally as ErrorTally,
        Evidence as Evidence,
        Explanation as Explanation,
        FailingTest as FailingTest,
        FailureWarning as FailureWarning,
        FittedGate as FittedGate,
        FragmentCandidate as FragmentCandidate,
        Freshness as Freshness,
        MachineFact as MachineFact,
        MemoryContext as MemoryContext,
        PipelineStep as PipelineStep,
        PlaybookFile as PlaybookFile,
        RecoveryCandidate as RecoveryCandidate,
        Relation as Relation,
        Remedy as Remedy,
        RemedyFeatures as RemedyFeatures,
        RepositoryPlaybook as RepositoryPlaybook,
        RunFilter as RunFilter,
        RunOrder as RunOrder,
        Scope as Scope,
        ScopeLevel as ScopeLevel,
        Silence as Silence,
        SimilarCase as SimilarCase,
        State as State,
        Why as Why,
        WordCounts as WordCounts,
        new_context_id as new_context_id,
    )
    from contextgraph.model.error import (
        EXCEPTIONS as EXCEPTIONS,
        Cause as Cause,
        ErrorKind as ErrorKind,
        ErrorPattern as ErrorPattern,
        ErrorSignature as ErrorSignature,
        Family as Family,
        RemedyAction as RemedyAction,
        RemedyKind as RemedyKind,
        RemedyPattern as RemedyPattern,
        SignatureLevel as SignatureLevel,
    )
    from contextgraph.model.methodology import (
        NO_USAGE as NO_USAGE,
        CausedError as CausedError,
        Clearance as Clearance,
        CommonRemedy as CommonRemedy,
        ConsolidationReport as ConsolidationReport,
        ErrorHistory as ErrorHistory,
        ErrorOccurrence as ErrorOccurrence,
        EscapeEvidence as EscapeEvidence,
        EscapeSuggestion as EscapeSuggestion,
        Fragment as Fragment,
        FragmentOutcome as FragmentOutcome,
        FragmentType as FragmentType,
        LoopEnding as LoopEnding,
        LoopInfo as LoopInfo,
        LoopKind as LoopKind,
        LoopSeverity as LoopSeverity,
        Methodology as Methodology,
        MethodologyGroup as MethodologyGroup,
        MethodologyStatus as MethodologyStatus,
        ModelWording as ModelWording,
        Phase as Phase,
        Recovered as Recovered,
        ResolvedBy as ResolvedBy,
        SimilarTo as SimilarTo,
        Source as Source,
        StepReport as StepReport,
        Summary as Summary,
        Unconsolidated as Unconsolidated,
        Usage as Usage,
        WordingPlan as WordingPlan,
        Words as Words,
        most_informative as most_informative,
    )
    from contextgraph.model.note import (
        Found as Found,
        Link as Link,
        LinkType as LinkType,
        MaintenanceReport as MaintenanceReport,
        Note as Note,
        NoteKind as NoteKind,
        NoteReceipt as NoteReceipt,
        NoteScope as NoteScope,
        NoteStatus as NoteStatus,
        Recollection as Recollection,
        Security as Security,
        Snapshot as Snapshot,
        StatementKind as StatementKind,
    )
    from contextgraph.model.trajectory import (
        Action as Action,
        ChangeStatus as ChangeStatus,
        Json as Json,
        Judged as Judged,
        Outcome as Outcome,
        OutcomeSource as OutcomeSource,
        PatchSummary as PatchSummary,
        RawTrajectory as RawTrajectory,
        Step as Step,
        TaskType as TaskType,
        Trajectory as Trajectory,
        adds_to as adds_to,
        instance_id_in as instance_id_in,
        precedes as precedes,
        repo_of as repo_of,
        task_instance as task_instance,
        texts_in as texts_in,
    )


# Searched in this order at first use: the hook of an agent needs the first two only.
_MODULES = (
    "error",
    "trajectory",
    "fragment",
    "methodology",
    "playbook",
    "context",
    "bundle",
    "note",
)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        for module in _MODULES:
            home = import_module(f"contextgraph.model.{module}")
            if hasattr(home, name):
                globals()[name] = getattr(home, name)
                return globals()[name]
        raise AttributeError(f"module 'contextgraph.model' has no attribute {name!r}")
