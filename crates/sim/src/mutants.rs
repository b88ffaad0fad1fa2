//! Rules that a scenario can have left out, to prove that the oracles notice.

use quorate_crypto::mutants;
pub use quorate_crypto::mutants::Mutant;

/// The rules that a run can break: those of the machines, the checks before them, the host, the log
/// and the executor; those of payments under [`crate::payments`]. The others are about keys and
/// shares that no scenario forges.
pub const ALL: [Mutant; 116] = [
    Mutant::SkipThreshold,
    Mutant::CertificateCountsHeads,
    Mutant::TallyCountsHeads,
    Mutant::WeakCountsHeads,
    Mutant::ChainedDoubleVote,
    Mutant::ChainedVoteAfterTimeout,
    Mutant::ChainedVoteBeforePersist,
    Mutant::ChainedProposeBeforePersist,
    Mutant::ChainedTimeoutBeforePersist,
    Mutant::ChainedAmnesia,
    Mutant::ChainedForgetTc,
    Mutant::JolteonStaleJustify,
    Mutant::ChainedUnboundedTc,
    Mutant::ChainedTcMaximum,
    Mutant::ChainedCommitGap,
    Mutant::ChainedNewestFirst,
    Mutant::HotStuffVoidLock,
    Mutant::HotStuffForgetLock,
    Mutant::HotStuffTwoChain,
    Mutant::HotStuffNothingDecides,
    Mutant::HotStuffKeepNewest,
    Mutant::HotStuffDropUnlessLeading,
    Mutant::HotStuffDropBeyondBatch,
    Mutant::HotStuffStuckHighQc,
    Mutant::HotStuffLearnVotedOnly,
    Mutant::HotStuffVoteToProposer,
    Mutant::HotStuffComplainToNext,
    Mutant::HotStuffNoSalvage,
    Mutant::HotStuffDropLateVotes,
    Mutant::BasicVoteTwiceInPhase,
    Mutant::BasicVoteBeforePersist,
    Mutant::BasicNoLock,
    Mutant::BasicPhaseUnsigned,
    Mutant::BasicDecideOnPreCommit,
    Mutant::BasicForgetPhase,
    Mutant::BasicNoNewViews,
    Mutant::BasicRememberByBlock,
    Mutant::WindowedAcceptTwice,
    Mutant::WindowedVoteBeforePersist,
    Mutant::WindowedCommitBeforePersist,
    Mutant::WindowedChangeBeforePersist,
    Mutant::WindowedAmnesia,
    Mutant::WindowedForgetBase,
    Mutant::SuspicionOfOne,
    Mutant::KeepSlowPrimary,
    Mutant::TieGoesToFast,
    Mutant::FastByFew,
    Mutant::VoteWithoutBodies,
    Mutant::AcknowledgeBeforeStored,
    Mutant::HostSendsEarly,
    Mutant::ChecksCostNothing,
    Mutant::WallClockOnce,
    Mutant::DeliverBeyondStop,
    Mutant::SignAfterStop,
    Mutant::LadenAfterStop,
    Mutant::FollowTheStop,
    Mutant::ProposeBeyondStop,
    Mutant::EpochFromZero,
    Mutant::StopUnchecked,
    Mutant::HandOverUnrecorded,
    Mutant::RecoverFormerEpoch,
    Mutant::HandOverOtherHeader,
    Mutant::SkipSync,
    Mutant::SkipDirectorySync,
    Mutant::AcceptTornRecord,
    Mutant::KeepTornTail,
    Mutant::TruncateCorruption,
    Mutant::RetryFailedSync,
    Mutant::GoOnAfterFailure,
    Mutant::TrustPageCache,
    Mutant::ForgetSessions,
    Mutant::ExecuteTwice,
    Mutant::SplitCommit,
    Mutant::PruneBeforeCommit,
    Mutant::PruneLatestRecord,
    Mutant::PruneUnexecuted,
    Mutant::InstallUnvouched,
    Mutant::ExecutedByFew,
    Mutant::MixedRoots,
    Mutant::IgnoreCertifiedRoot,
    Mutant::AnswerUnsigned,
    Mutant::SignWithoutWitnesses,
    Mutant::PayVoteNamedOutputs,
    Mutant::PayLockByName,
    Mutant::PayNoLocks,
    Mutant::PayPartialLock,
    Mutant::PayVoteBeforePersist,
    Mutant::PayRefuseRepeats,
    Mutant::PayInflate,
    Mutant::PayOverflow,
    Mutant::PayDuplicateInputs,
    Mutant::PayAnyOwner,
    Mutant::PayTrustCertificates,
    Mutant::PayTrustPath,
    Mutant::PayAnyShard,
    Mutant::PayRootOfAnybody,
    Mutant::PayAnyIssuer,
    Mutant::PayVoteOverFrozen,
    Mutant::PayReportBeforePersist,
    Mutant::PayRefundSetsFree,
    Mutant::PayRefundToAnybody,
    Mutant::PayReleaseMostReported,
    Mutant::PayReleaseOneInput,
    Mutant::PayReleaseToAnybody,
    Mutant::PayReleaseUnheard,
    Mutant::PayFreezeByAnybody,
    Mutant::PayReportByAnybody,
    Mutant::PayVoteAfterClosing,
    Mutant::PayCloseBeforePersist,
    Mutant::PayUnionTakesOne,
    Mutant::PayTrustFormerEpochs,
    Mutant::PayAdmitOnOneReport,
    Mutant::PayForgetEarlierBorders,
    Mutant::PayTrustInherited,
    Mutant::PayCloseForAnybody,
    Mutant::PayCloseUndecided,
];

/// Leaves a rule out on this thread until it is dropped.
#[derive(Debug)]
pub struct Active(());

impl Active {
    /// From now on.
    ///
    /// # Panics
    /// When there is a mutant and this build leaves out no rules ([`mutants::ENABLED`]).
    #[must_use]
    pub fn set(mutant: Option<Mutant>) -> Self {
        mutants::set(mutant);
        Self(())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        mutants::set(None);
    }
}
