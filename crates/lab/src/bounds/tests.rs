use super::{Workload, operations_per_request};
use quorate_report::results::bounds::{Bounds, CpuShares, CryptoSpeed, DiskSpeed, Parts};

const PARTS: Parts = Parts {
    disk: DiskSpeed {
        unsynced_mb_s: 1_000.0,
        synced_mb_s: 400.0,
        sync_p50_ms: 0.5,
        sync_p99_ms: 4.0,
    },
    crypto: CryptoSpeed {
        ed25519_sign_us: 20.0,
        ed25519_verify_us: 40.0,
        ed25519_batch_us: 15.0,
        bls_verify_us: 1_000.0,
        bls_combine_us: 1_100.0,
        hash_mb_s: 4_500.0,
        tls_mb_s: 1_000.0,
    },
};

const WORKLOAD: Workload =
    Workload { validators: 4, cores: 2, tx_bytes: 500, logged_bytes: 1_000.0, synced: true };

fn bounds(workload: &Workload) -> Bounds {
    super::bounds(PARTS, workload, 20_000.0)
}

#[test]
fn the_disk_logs_every_operation_once_for_each_validator() {
    // 400 MB/s over 4 × 1,000 bytes.
    assert_eq!(bounds(&WORKLOAD).disk_tps, 100_000.0);
    assert_eq!(bounds(&Workload { synced: false, ..WORKLOAD }).disk_tps, 250_000.0);
    assert_eq!(bounds(&Workload { validators: 8, ..WORKLOAD }).disk_tps, 50_000.0);
}

#[test]
fn the_processor_encrypts_hashes_and_checks() {
    // 256 operations share 5 checks of 40 µs, 3 of 15 and 5 signatures of 20: 345 µs.
    let expected = CpuShares { tls: 2.0, hash: 1.0, signatures: 1.35 };
    assert_eq!(bounds(&WORKLOAD).cpu_us_per_tx, expected);
    assert_eq!(bounds(&WORKLOAD).cpu_tps, (2e6 / 4.35_f64).round());
    assert_eq!(bounds(&Workload { cores: 4, ..WORKLOAD }).cpu_tps, (4e6 / 4.35_f64).round());
}

#[test]
fn the_lower_bound_counts() {
    assert_eq!(bounds(&WORKLOAD).reached, 0.2);
    let text: Vec<String> = bounds(&WORKLOAD).figures().into_iter().map(|row| row.1).collect();
    assert_eq!(text[0], "disk 100,000 tx/s · CPU 459,770 tx/s; 20 % of the disk's reached");
    let heavy = bounds(&Workload { logged_bytes: 1.0, ..WORKLOAD });
    assert!(heavy.figures()[0].1.contains("of the CPU's reached"), "{:?}", heavy.figures());
    assert!(text.iter().all(|line| line.chars().count() <= 84), "{text:?}");
}

#[test]
fn large_operations_share_a_signature_with_fewer() {
    let shared = |bytes| operations_per_request(bytes);
    assert_eq!((shared(64), shared(512), shared(1_024)), (256, 256, 128));
    assert_eq!((shared(131_072), shared(1_000_000), shared(0)), (1, 1, 256));
}
