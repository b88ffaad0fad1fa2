//! Rules of the whole workspace that a test can switch off, to prove that the tests would notice.
//! They are listed here, in the lowest crate, so that one switch serves all.
//!
//! Tests are built with the feature `mutants`, under which [`set`] breaks one rule on the current
//! thread. Without the feature [`active`] is the constant `false` and the compiler removes every
//! trace.

/// A rule left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// Bits of a bitmap past its last member are accepted when it is decoded.
    AcceptBitmapPadding,
    /// A certificate whose bitmap names nobody is not refused before its signature is looked at.
    AcceptNoSigners,
    /// Ed25519 batches are checked without the cofactor, single signatures with it.
    BatchWithoutCofactor,
    /// Shares are aggregated without being checked, so one bad share poisons the certificate.
    TrustShares,
    /// The identity point is accepted as a key, a share or an aggregate.
    AcceptIdentity,
    /// An identity key joins a committee though nobody proved to hold it.
    AcceptUnheldIdentity,
    /// A threshold certificate may name fewer signers than its signature takes.
    ThresholdCountsNobody,
    /// The sharings of a committee are dealt from one seed, and taken when they share one secret.
    SharingsShareASecret,
    /// Public shares are taken whether or not they lie on one polynomial with the group's key.
    TrustDealer,
    /// Key generation: a share is taken without comparing it with its dealer's commitments.
    DkgNoShareCheck,
    /// Key generation: a dealer need not hold what it commits to.
    DkgNoPossession,
    /// Key generation: a step counts though its member did not sign it.
    DkgAnySigner,
    /// Key generation: f+1 members end a phase.
    DkgCloseByFew,
    /// Key generation: a dealer that leaves a complaint unanswered is kept.
    DkgKeepSilent,
    /// Key generation: an answer is taken whatever it opens.
    DkgAnyAnswer,
    /// Key generation: so few dealers are enough that all of them may lie.
    DkgFewDealers,
    /// A certificate counts whatever its signers weigh.
    SkipThreshold,
    /// A certificate counts by how many signed it, not by what they weigh.
    CertificateCountsHeads,
    /// Shares are combined when enough members sent one, not when they weigh enough.
    TallyCountsHeads,
    /// f+1 members are taken to include an honest one, whatever they weigh.
    WeakCountsHeads,
    /// Opening a sealed key file may cost whatever the file says.
    SkipSealCost,
    /// Chained protocols: a second vote in one view.
    ChainedDoubleVote,
    /// Chained protocols: a vote in a view that timed out.
    ChainedVoteAfterTimeout,
    /// Chained protocols: a vote that leaves without a durable promise.
    ChainedVoteBeforePersist,
    /// Chained protocols: a proposal that leaves before it is durable.
    ChainedProposeBeforePersist,
    /// Chained protocols: a timeout that leaves before it is durable.
    ChainedTimeoutBeforePersist,
    /// Chained protocols: a view that timed out is left without a certificate.
    ChainedEnterUncertified,
    /// Chained protocols: promises are forgotten in a restart.
    ChainedAmnesia,
    /// Chained protocols: the timeout certificate is forgotten in a restart.
    ChainedForgetTc,
    /// Jolteon: a block may extend less than its timeout certificate reports.
    JolteonStaleJustify,
    /// Chained protocols: a timeout certificate may report views at or beyond its own.
    ChainedUnboundedTc,
    /// Chained protocols: a timeout certificate need not show the highest certificate that it
    /// reports.
    ChainedTcMaximum,
    /// Chained protocols: a certificate over a gap in the views decides.
    ChainedCommitGap,
    /// Chained protocols: a decision delivers its blocks newest first.
    ChainedNewestFirst,
    /// Windowed protocols: a second value gets a vote for one slot and view.
    WindowedAcceptTwice,
    /// Windowed protocols: a vote leaves without a durable promise.
    WindowedVoteBeforePersist,
    /// Windowed protocols: a pre-prepare leaves without a durable promise.
    WindowedProposeBeforePersist,
    /// Windowed protocols: a primary may propose for slots that its view began with.
    WindowedFillNewView,
    /// Windowed protocols: a view change may report its own view and later ones.
    ViewChangeAnyEvidence,
    /// Windowed protocols: a view change may report a prepared value that nobody has.
    ViewChangeWithoutValue,
    /// Windowed protocols: a vote to commit a value that is not here.
    WindowedCommitWithoutValue,
    /// Windowed protocols: a vote to commit leaves before its certificate is durable.
    WindowedCommitBeforePersist,
    /// Windowed protocols: a view change leaves before it is durable.
    WindowedChangeBeforePersist,
    /// Windowed protocols: promises are forgotten in a restart.
    WindowedAmnesia,
    /// Windowed protocols: what a view began with is forgotten in a restart, and the primary may
    /// propose something else.
    WindowedForgetBase,
    /// Windowed protocols: a member acts in a view that it wants before that has begun.
    WindowedActBeforeNewView,
    /// Windowed protocols: what may be forgotten is not durable before a later slot takes its
    /// place.
    WindowedForgetStable,
    /// Windowed protocols: after a restart a vote is said again although its bodies were lost.
    WindowedSayWithoutBodies,
    /// Windowed protocols: a new view may name fewer view changes than the honest give.
    NewViewByFew,
    /// Windowed protocols: a new view may name what members said as earlier views timed out.
    NewViewByOldChanges,
    /// Windowed protocols: a new view ends with the last slot of which a view change says anything.
    NewViewToAnyClaim,
    /// Epochs: what lies behind a stop block is delivered.
    DeliverBeyondStop,
    /// Epochs: who decided the stop block goes on signing in its epoch.
    SignAfterStop,
    /// Epochs, chained protocols: what extends an undecided stop block may order bodies.
    LadenAfterStop,
    /// Epochs: blocks after a stop block are taken from others as decided in its epoch.
    FollowTheStop,
    /// Epochs, windowed protocols: a primary fills slots behind a stop block that it accepted.
    ProposeBeyondStop,
    /// Epochs, windowed protocols: a new view begins with the slots after height zero, not after
    /// the epoch's first.
    EpochFromZero,
    /// SBFT: of values prepared and accepted in one view, the accepted one is proposed again.
    TieGoesToFast,
    /// SBFT: f+1 reports of an accepted value are enough to propose it again.
    FastByFew,
    /// Threshold keys: all that a member signs is signed with its share for a quorum.
    SignWithOneShare,
    /// Checkpoints: fewer than a quorum keep a state.
    CheckpointByFew,
    /// Epochs: the id of one names its number alone, so what is signed in one that began otherwise
    /// is good in this one.
    EpochByNumber,
    /// Epochs: fewer than a quorum hand over.
    HandOverByFew,
    /// Epochs: a hand-over comes with the header of another state.
    HandOverOtherHeader,
    /// Epochs: bodies of the epoch before are taken for gone when they were let go.
    FormerBodiesForgotten,
    /// Epochs: a replica acts on the promises of the epoch before its own.
    RecoverFormerEpoch,
    /// Epochs: the keys of a network's first epoch vouch for every height.
    FirstEpochOwnsAll,
    /// Epochs: evidence of one counts under the committee in force.
    ProofOfAnyEpoch,
    /// Epochs: a client adds up replies of members of two epochs.
    RepliesAcrossEpochs,
    /// Epochs: the next one begins before the hand-over to it is durable here.
    EpochUnrecorded,
    /// Epochs: any snapshot of the height before one is taken for the state that was handed over.
    FormerStateUnproven,
    /// Epochs: a member signs in an epoch what a height of the one before came to.
    SignFormerHeight,
    /// Epochs: a program executes by a version of the rules that it lacks.
    ExecuteByLackedVersion,
    /// Epochs: a threshold key goes on while others hold its shares.
    GroupKeyKept,
    /// Epochs: old keys are trusted for ever.
    TrustForEver,
    /// Epochs: members are believed when they say that their epoch ended just now.
    TrustShownTime,
    /// A certificate of another height or root counts for the state that it lies beside.
    StateOfOtherHeader,
    /// A chunk of a state's file is taken whatever its content.
    StateChunkUnchecked,
    /// A value counts as part of a state's root by the hash that lies beside it.
    StateValueUnchecked,
    /// A network founded on one state begins with another.
    BeginWithOtherState,
    /// A member of a network that was founded on a state begins, and signs, without it.
    BeginWithoutState,
    /// Epochs: a change is good whatever those weigh who approved it.
    ChangeApprovedByFew,
    /// Epochs: a change is good though the next committee's quorum has not accepted it.
    ChangeAcceptedByFew,
    /// Epochs: newcomers need not accept their places.
    NewcomersUnasked,
    /// Epochs: a stop block gets a vote whether or not its change is here and good at its height.
    StopUnchecked,
    /// Epochs: the next epoch begins without a record of the hand-over.
    HandOverUnrecorded,
    /// Epochs: a member whose own state is not the one that is handed over hands it over.
    HandOverTrustOwn,
    /// Epochs: a host that knows two ends of its epoch goes on with the later one.
    EndsDiffer,
    /// Epochs: who accepts its place may have no state.
    AcceptedFarBehind,
    /// Checkpoints: a member whose own root is another than the certified one goes on.
    CheckpointTrustOwn,
    /// SBFT: a quorum's votes decide at once.
    FastProofByQuorum,
    /// HotStuff: a block is compared with the lock by its own view, not by its certificate's.
    HotStuffVoidLock,
    /// HotStuff: the lock is forgotten in a restart.
    HotStuffForgetLock,
    /// HotStuff: a chain of two certificates decides.
    HotStuffTwoChain,
    /// HotStuff: the walk down a chain goes astray, and nothing decides.
    HotStuffNothingDecides,
    /// HotStuff: of what several blocks that are decided together order, the newest keeps it.
    HotStuffKeepNewest,
    /// HotStuff: whoever does not lead throws requests away.
    HotStuffDropUnlessLeading,
    /// HotStuff: what does not fit into a batch is thrown away with it.
    HotStuffDropBeyondBatch,
    /// HotStuff: the highest certificate never moves.
    HotStuffStuckHighQc,
    /// HotStuff: the certificate that a proposal carries teaches nothing.
    HotStuffLearnVotedOnly,
    /// HotStuff: votes go to who proposed, not to who leads next.
    HotStuffVoteToProposer,
    /// HotStuff: complaints go to the next leader alone.
    HotStuffComplainToNext,
    /// HotStuff: complaints do not show their senders' last votes.
    HotStuffNoSalvage,
    /// HotStuff: the votes that late complaints show are thrown away.
    HotStuffDropLateVotes,
    /// Basic HotStuff: a second vote in one phase of a view.
    BasicVoteTwiceInPhase,
    /// Basic HotStuff: a vote of a later phase that leaves without a durable promise.
    BasicVoteBeforePersist,
    /// Basic HotStuff: a certificate of pre-commit votes does not lock.
    BasicNoLock,
    /// Basic HotStuff: votes of all phases sign the same statement.
    BasicPhaseUnsigned,
    /// Basic HotStuff: the second phase decides.
    BasicDecideOnPreCommit,
    /// Basic HotStuff: how far the phases of a view were voted in is forgotten in a restart.
    BasicForgetPhase,
    /// Basic HotStuff: a leader proposes without a quorum's new-views.
    BasicNoNewViews,
    /// Certificates are remembered by their blocks, not by what their votes signed.
    BasicRememberByBlock,
    /// A state is taken over at a height that nothing decided.
    AnchorUndecided,
    /// Blocks that nobody asked for are taken in without a certificate above them.
    PlantUncertified,
    /// A message of another protocol is taken for one of the committee's.
    AnyProtocol,
    /// A vote for a block whose bodies are not stored.
    VoteWithoutBodies,
    /// Bodies are acknowledged before they are stored.
    AcknowledgeBeforeStored,
    /// The latest of two bodies under one number is acknowledged.
    AcknowledgeLatest,
    /// A decided body is released though an undecided block that was voted for orders it again.
    ReleaseOrderedAgain,
    /// A certificate of availability counts whatever its signers weigh.
    AvailableBelowWeak,
    /// A body is taken for available because its number is certified, whatever its digest.
    AvailableByNumber,
    /// The host signs with a key whose promises were lost with its disk.
    SignAfterLoss,
    /// Notes of what a key signed are left behind when another folder is named for them.
    LeaveNotesBehind,
    /// That a log is lost is not noted before there is another.
    LossUnnoted,
    /// Storage: a log that lacks what had been committed to it is signed with all the same.
    SignAfterSetBack,
    /// A member whose key signs no more goes on numbering bodies.
    SealWithoutSigning,
    /// Beside the key nothing remembers that the log was set back.
    ForgetSetBack,
    /// The file beside the key is told of a record before the log has it durably.
    GuardBeforeSync,
    /// Storage: promises that a log lacks are made up for by a copy that does not go as far.
    RepairFromStaleCopy,
    /// A member acts on its records before others told it what it signed.
    SignWithoutWitnesses,
    /// A member goes on signing though others hold a signature of its key that is newer than its
    /// records.
    SignBelowWitnesses,
    /// Chained protocols: a member's vote may be shown as one of a phase that its protocol lacks.
    AnyPhase,
    /// A member goes on signing though another process asks with its key.
    IgnoreTwin,
    /// Storage: files are opened whoever owns them.
    OpenForeign,
    /// The host sends before what was persisted is durable.
    HostSendsEarly,
    /// Blocks are shown, with certificates that have the own share, before its promise is durable.
    ShowBeforePersist,
    /// The host executes before what was persisted is durable.
    HostExecutesEarly,
    /// The host lets a send overtake one that waits for a record.
    HostSendOvertakes,
    /// The host writes a promise ahead of heights that were appended before it.
    HostAppendsBehind,
    /// A member says of a request that took effect that it is not admitted.
    RefuseWhatTookEffect,
    /// Storage: a group is called durable without a sync of its file.
    SkipSync,
    /// Storage: a new segment's directory entry is not synced.
    SkipDirectorySync,
    /// Storage: a record is believed without its checksum.
    AcceptTornRecord,
    /// Storage: the end of a torn group stays on disk and may be read back later as if it were new.
    KeepTornTail,
    /// Storage: a bad record ends the log even when committed records follow it.
    TruncateCorruption,
    /// Storage: a failed sync is tried again, and its second answer believed.
    RetryFailedSync,
    /// Storage: a failed write or sync is reported once and forgotten.
    GoOnAfterFailure,
    /// Storage: a write that found no room counts as done.
    ForgetFullWrite,
    /// Storage: what was read back at a restart is believed durable without a sync.
    TrustPageCache,
    /// Storage: the session table is not stored.
    ForgetSessions,
    /// Storage: a repeated request is executed again.
    ExecuteTwice,
    /// Storage: state is committed in a transaction of its own, before sessions and height.
    SplitCommit,
    /// Storage: a height is called durable while its checkpoint is on its way.
    DurableEarly,
    /// Histories: one that lacks heights of the state goes on all the same.
    HistoryGap,
    /// Histories: what a crash left of one that was to begin anew is taken for one.
    HistoryRemains,
    /// Histories: the word for how far they go is written without the index of the same heights.
    IndexApart,
    /// Storage: a checkpoint is durable before what it was to wait for is done.
    CheckpointAhead,
    /// Storage, state: a batch is committed before all of its files are synced.
    CommitBeforeFiles,
    /// Storage, state: frames count whose batch was never committed.
    TakeUncommitted,
    /// Storage, state: a clean segment is removed before what lived in it is durable elsewhere.
    RemoveBeforeDurable,
    /// Storage, state: segments that a batch gave up are read again if their files are there.
    ReadGivenUp,
    /// Storage, state: the file of an earlier version is removed before a log has all of it.
    RemoveFormerEarly,
    /// Storage, state: a value is believed without its checksum.
    TrustValues,
    /// Storage: segments are pruned before the log durably says so.
    PruneBeforeCommit,
    /// Storage: a segment is pruned with the latest record of a kind in it.
    PruneLatestRecord,
    /// Storage: a segment is pruned with bodies or decided heights that are not executed durably.
    PruneUnexecuted,
    /// Storage: a snapshot replaces the state in more than one transaction.
    SplitInstall,
    /// Storage: a chunk goes with the older snapshot though the newer one names it too.
    RemoveSharedChunks,
    /// Storage: a snapshot is complete before its chunks are durable.
    CompleteBeforeChunks,
    /// Storage: a damaged chunk takes one snapshot with it, and stays for the others.
    KeepDamagedChunk,
    /// State transfer: a snapshot is installed that too few members vouch for.
    InstallUnvouched,
    /// State transfer: a chunk is taken without comparing its hash.
    AcceptWrongChunk,
    /// Execution: a root counts as certified whoever signed it.
    ExecutedByFew,
    /// Execution: a path proves whatever it leads to.
    AnyPath,
    /// Execution: shares over different roots are added up.
    MixedRoots,
    /// Execution: a client takes another request's certified reply for its own.
    OthersReply,
    /// Execution: a member whose root is not the certified one goes on.
    IgnoreCertifiedRoot,
    /// Engine: what a state came to is still answered when another one replaced it.
    KeepOldAnswers,
    /// Engine: a member that lost its promises takes requests and signs what they came to.
    AnswerUnsigned,
    /// Key-value: a node's hash does not cover at which bit its keys differ.
    KvUnboundPosition,
    /// Key-value: the root does not cover the number of keys.
    KvForgetCount,
    /// Key-value: a key is taken for absent though the leaf that it leads to is not shown.
    KvAbsentAnywhere,
    /// Key-value: a range is taken for complete though a part of it is not shown.
    KvRangeGap,
    /// Key-value: an answer's values are not compared with what the proof shows.
    KvTrustValues,
    /// Key-value: a replaced value is followed at the leaf that its key leads to, whosever it is.
    KvAnyLeaf,
    /// Key-value: the first bytes of a key are taken for all of it.
    KvHeadIsKey,
    /// Key-value: a batch that is refused leaves what its first steps did.
    KvPartialBatch,
    /// EVM: a transaction for another chain is executed.
    EvmAnyChain,
    /// EVM: a transaction is executed as often as it comes.
    EvmAnyNonce,
    /// EVM: a transaction is executed though its block has no gas left for it.
    EvmUnboundedBlock,
    /// EVM: both signatures that can be made of one are taken.
    EvmTwinSignature,
    /// EVM: what was read of one transaction ahead of execution passes for another's.
    EvmReadOfAnother,
    /// EVM: a proof is not compared with the state that was certified.
    EvmTrustProof,
    /// EVM: a proof of a block that was named is compared with the newest state.
    EvmProofOfAnyBlock,
    /// EVM: delegations are taken by the first version of the rules too.
    EvmEarlyDelegations,
    /// EVM: the rules are those of a genesis's last fork, whatever a block's time.
    EvmNewestFork,
    /// Payments: a vote covers the name that a client gave to an output, not the transaction (paper
    /// 003).
    PayVoteNamedOutputs,
    /// Payments: an input is locked by its name alone, so whoever spends one of that name locks it
    /// (paper 003).
    PayLockByName,
    /// Payments: an authority votes again for what it did not lock.
    PayNoLocks,
    /// Payments: an input is looked up in memory alone, not among those on disk.
    PayIgnoreCold,
    /// Payments: an input that cannot be looked up is taken for free.
    PayFailedIsFree,
    /// Payments: an authority that finds neither locks nor a mark starts without its operator's
    /// word.
    PayStartUnasked,
    /// Payments: inputs that move to the disk leave memory before they are found there.
    PayForgetBeforeKept,
    /// Payments: a vote leaves before the mark beside the key counts its lock.
    PayUnmarkedVotes,
    /// Payments: inputs are locked one after the other, though a later one is taken.
    PayPartialLock,
    /// Payments: a vote leaves before its lock is durable.
    PayVoteBeforePersist,
    /// Payments: an identical transaction is refused when it comes again (paper 003).
    PayRefuseRepeats,
    /// Payments: outputs may be worth more than inputs.
    PayInflate,
    /// Payments: sums wrap around.
    PayOverflow,
    /// Payments: an input may be named twice.
    PayDuplicateInputs,
    /// Payments: an owner's signature is not looked at.
    PayAnyOwner,
    /// Payments: certificates of inputs are not looked at.
    PayTrustCertificates,
    /// Payments: an input's place in its transaction is not looked at.
    PayTrustPath,
    /// Payments: authorities vote for other shards' owners.
    PayAnyShard,
    /// Payments: Merkle roots that were checked are remembered without whose they are (paper 003).
    PayRootOfAnybody,
    /// Payments: whoever signs may issue.
    PayAnyIssuer,
    /// Payments: an authority votes for what it had not locked over a frozen coin.
    PayVoteOverFrozen,
    /// Payments: an authority reports a freeze that is not durable.
    PayReportBeforePersist,
    /// Payments: what was decided for is voted for unchecked.
    PayTrustDecision,
    /// Payments: a refunded coin is free again.
    PayRefundSetsFree,
    /// Payments: a refund may pay anybody.
    PayRefundToAnybody,
    /// Releases: the transaction that most reports name is decided.
    PayReleaseMostReported,
    /// Releases: a transaction is decided for one of its inputs, whatever is of the others.
    PayReleaseOneInput,
    /// Releases: a report may name a transaction that the coin's owner never made.
    PayReleaseToAnybody,
    /// Releases: authorities that did not report are taken to have voted for nothing.
    PayReleaseUnheard,
    /// Releases: anybody may have a coin frozen.
    PayFreezeByAnybody,
    /// Releases: a report need not be signed by its authority.
    PayReportByAnybody,
    /// Releases: an owner may have any number of coins frozen.
    PayFreezeWithoutBound,
    /// Releases: whoever follows the committee's order goes on where a number is left out.
    PayFollowOverGap,
    /// Releases: a shard reports coins of owners that another one votes for.
    PayReportOfOtherShard,
    /// Payments: an authority votes on in an epoch of which it reported its locks.
    PayVoteAfterClosing,
    /// Payments: an authority reports its locks before it is durable that it votes no more.
    PayCloseBeforePersist,
    /// Payments: an epoch begins from fewer reports than a quorum's.
    PayUnionOfFewer,
    /// Payments: authorities that did not report at the end of an epoch voted for nothing.
    PayUnionUnheard,
    /// Payments: of two transactions that may both have taken an input, the next epoch takes one.
    PayUnionTakesOne,
    /// Payments: a certificate of an earlier epoch counts though no reports name its transaction.
    PayTrustFormerEpochs,
    /// Payments: a certificate of an earlier epoch counts once one report names its transaction.
    PayAdmitOnOneReport,
    /// Payments: what an epoch began with is forgotten where its own reports name an input.
    PayForgetEarlierBorders,
    /// Payments: an epoch after the first begins without what the ones before it left.
    PayBeginWithNothing,
    /// Payments: an epoch begins with reports whose chunks are not what was signed.
    PayTrustChunks,
    /// Payments: what an earlier epoch locked is voted for unchecked.
    PayTrustInherited,
    /// Payments: an authority's second report of one epoch counts too.
    PayReportTwice,
    /// Payments: a report of an epoch that ended counts though the next one has begun.
    PayReportTooLate,
    /// Payments: that an authority votes in an epoch need not be signed by it.
    PayEnterForAnybody,
    /// Payments: an epoch ends before a quorum of its authorities votes in it.
    PayChangeBeforeBegun,
    /// Payments: the next network file needs nobody's consent.
    PayChangeByAnybody,
    /// Payments: the next authorities need not be ready for their epoch.
    PayChangeUnready,
    /// Payments: an epoch begins with chunks that are not whole, or not in order.
    PayTakeUnsoundChunks,
    /// Payments: a report of an ended epoch need not be signed by its authority.
    PayCloseForAnybody,
    /// Payments: a shard that was closed for one change reports for another too.
    PayCloseTwice,
    /// Payments: an authority of which nothing is left begins the next epoch under its key.
    PayBeginForgotten,
    /// Payments: what releases decided is not told at the end of an epoch.
    PayCloseUndecided,
    /// Payments: an authority reports what a coin is locked for in an epoch that it closed.
    PayReportAfterClosing,
    /// Payments: a contested input is reported as free.
    PayReleaseContested,
    /// Payments: a certificate of an epoch that ended decides a release.
    PayReleaseByFormerKeys,
    /// Payments: reports of an epoch that ended count for a release in the next one.
    PayReportsOfFormerEpoch,
    /// Payments: an authority takes what was ordered in earlier epochs for its own epoch's.
    PayFollowFormerEpoch,
    /// Payments: an epoch begins with reports that are not those that were ordered.
    PayBeginWithUnordered,
    /// Payments: whoever follows a network to its next epoch asks for nobody's signatures.
    PayFollowUnsigned,
    /// Payments: whoever follows a network believes authorities of any age.
    PayFollowForEver,
    /// Payments: one authority's answer says that its epoch is in force.
    PayConfirmByFewer,
    /// Payments: a certificate of an ended epoch counts once one authority says so.
    PayCountByFewer,
    /// Payments: a wallet takes in a receipt of an ended epoch by its signatures.
    PayReceiveFormer,
    /// Payments: a wallet shows a transaction that is not durable.
    PayShowUnstored,
    /// Payments: a restored wallet spends coins whose state no authority was asked for.
    PaySpendUnasked,
    /// Payments: a wallet signs the refund of a coin whose release is not decided.
    PayRefundUndecided,
    /// Payments: authorities that know of a lock count as saying that a coin is free.
    PayFreeByFewer,
    /// Payments: a restored wallet's requests are paid before its records are back.
    PayRequestUnrecovered,
    /// Payments: a wallet's book that is behind its mark is opened.
    PayOpenBehindMark,
    /// Payments: a wallet's archive that is not the one that its book goes on from is opened.
    PayOpenOtherArchive,
    /// Payments: a wallet does not look in its archive for what it spent or was ordered.
    PayForgetArchived,
    /// Payments: a wallet has the records of coins removed that it did not spend.
    PayRemoveUnspent,
    /// Payments: an authority keeps a wallet's record for whoever sends it.
    PayKeepAnybodysRecord,
    /// Payments: coins that a wallet had already pay a request of its once more.
    PayRequestByKnownCoins,
    /// Windowed protocols: a primary that one member suspects is suspected by all.
    SuspicionOfOne,
    /// Windowed protocols: `f+1` members' suspicions shown to one member make it leave its view.
    LeaveByFewSuspicions,
    /// Engine: a stable leader is kept however long bodies wait for it.
    KeepSlowPrimary,
    /// A pre-prepare, with its primary's vote, is taken from whoever sends it.
    PrePrepareOfAnybody,
    /// Whose messages are checked next does not depend on what the earlier ones cost.
    ChecksCostNothing,
    /// Wall clocks are read when a host starts and never again.
    WallClockOnce,
}

/// Tells whether this build can leave out rules at all: under the feature `mutants`, and in tests.
pub const ENABLED: bool = cfg!(any(test, feature = "mutants"));

#[cfg(any(test, feature = "mutants"))]
mod enabled {
    use super::Mutant;
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    thread_local! {
        static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Leaves out one rule on this thread, or (with `None`) restores them all.
    pub fn set(mutant: Option<Mutant>) {
        ACTIVE.set(mutant);
    }

    /// Returns `true` if `mutant` is set on this thread.
    pub fn active(mutant: Mutant) -> bool {
        ACTIVE.get() == Some(mutant)
    }

    /// Restores the rules even when an assertion fails.
    struct Restore;

    impl Drop for Restore {
        fn drop(&mut self) {
            set(None);
        }
    }

    /// Asserts that a test passes as things are and panics with the rule left out.
    ///
    /// # Panics
    /// When the test fails as things are, or does not notice the mutant.
    pub fn assert_noticed(mutant: Mutant, test: fn()) {
        let _restore = Restore;
        test();
        set(Some(mutant));
        let outcome = catch_unwind(AssertUnwindSafe(test));
        assert!(outcome.is_err(), "no assertion failed under {mutant:?}");
    }
}

#[cfg(any(test, feature = "mutants"))]
pub use enabled::{active, assert_noticed, set};

/// Returns `false`: without the feature `mutants` none is ever set.
#[cfg(not(any(test, feature = "mutants")))]
#[inline(always)]
pub const fn active(_mutant: Mutant) -> bool {
    false
}

/// Keeps every rule.
///
/// # Panics
/// When there is a mutant: this build has none.
#[cfg(not(any(test, feature = "mutants")))]
pub fn set(mutant: Option<Mutant>) {
    assert!(mutant.is_none(), "build with the feature `mutants` to leave out a rule");
}

#[cfg(test)]
mod tests;
