//! Gauges of the process, its queues, connections and disk, which are read when `/metrics` is.

use super::{Labels, lane_name};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use quorate_storage::RoomFigures;
use quorate_types::{Lane, ReplicaId};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The host's figures at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostFigures {
    pub(crate) uptime_s: u64,
    pub(crate) process: Process,
    pub(crate) disk: Disk,
    /// Room on it, where it is looked after.
    pub(crate) room: Option<RoomFigures>,
    /// Other members whose lanes are all connected.
    pub(crate) peers: usize,
    pub(crate) clients: usize,
    /// Frames and bytes that wait to be sent, by lane.
    pub(crate) outboxes: Vec<(Lane, usize, usize)>,
    /// Events that wait for the machine thread, by queue.
    pub(crate) events: Vec<(&'static str, usize)>,
    /// Bytes of bodies that wait to be written to the log.
    pub(crate) log_backlog_bytes: u64,
}

/// Figures that the operating system gives of this process; `None` where it gives none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Process {
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) open_files: Option<u64>,
}

/// Bytes that the data folder takes, and bytes that are left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Disk {
    pub(crate) log_bytes: u64,
    pub(crate) state_bytes: u64,
    pub(crate) free_bytes: Option<u64>,
}

/// Facts that do not change while a validator runs.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) member: ReplicaId,
    pub(crate) version: &'static str,
    pub(crate) network: String,
    pub(crate) service: String,
    pub(crate) durability: String,
    pub(crate) weight: u64,
    pub(crate) members: usize,
    pub(crate) weight_total: u64,
    pub(crate) quorum: u64,
}

#[derive(Debug, Default)]
pub(super) struct HostGauges {
    uptime: Gauge,
    resident: Gauge,
    cpu: Counter<f64, AtomicU64>,
    open_files: Gauge,
    log_disk: Gauge,
    state_disk: Gauge,
    disk_free: Gauge,
    disk_low: Gauge,
    disk_needed: Gauge,
    disk_reserve: Gauge,
    peers: Gauge,
    clients: Gauge,
    outbox_frames: Family<Labels, Gauge>,
    outbox_bytes: Family<Labels, Gauge>,
    events: Family<Labels, Gauge>,
    log_backlog: Gauge,
    validator: Family<Labels, Gauge>,
    weight: Gauge,
    members: Gauge,
    weight_total: Gauge,
    quorum: Gauge,
}

impl HostGauges {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let gauges = Self::default();
        let mut add = |name, help, gauge: &Gauge| registry.register(name, help, gauge.clone());
        add("uptime_seconds", "Seconds since the start", &gauges.uptime);
        add("process_resident_bytes", "Resident memory", &gauges.resident);
        add("process_open_files", "Open file descriptors", &gauges.open_files);
        add("log_disk_bytes", "Disk taken by the log", &gauges.log_disk);
        add("state_disk_bytes", "Disk taken by the state store", &gauges.state_disk);
        add("disk_free_bytes", "Disk free where the data are kept", &gauges.disk_free);
        add("disk_low_bytes", "With less disk free clients are refused", &gauges.disk_low);
        add("disk_needed_bytes", "Disk that waiting writes need", &gauges.disk_needed);
        add("disk_reserve_bytes", "Disk set aside; 0 once it is in use", &gauges.disk_reserve);
        add("peers_connected", "Other members whose lanes are all connected", &gauges.peers);
        add("clients_connected", "Clients connected", &gauges.clients);
        add("log_backlog_bytes", "Bodies that wait to be written to the log", &gauges.log_backlog);
        add("validator_weight", "How much its vote weighs", &gauges.weight);
        add("committee_weight", "The weight of all members", &gauges.weight_total);
        add("committee_members", "Members of the committee", &gauges.members);
        add("committee_quorum", "The weight that a certificate needs", &gauges.quorum);
        registry.register("process_cpu_seconds", "Processor time used", gauges.cpu.clone());
        let mut add = |name, help, family: &Family<Labels, Gauge>| {
            registry.register(name, help, family.clone());
        };
        add("outbox_frames", "Frames that wait to be sent to members", &gauges.outbox_frames);
        add("outbox_bytes", "Bytes that wait to be sent to members", &gauges.outbox_bytes);
        add("queue_events", "Events that wait for the machine thread", &gauges.events);
        add("validator", "1, with what this validator is as labels", &gauges.validator);
        gauges
    }

    pub(super) fn describe(&self, identity: &Identity) {
        let labels = vec![
            ("member", identity.member.to_string()),
            ("version", identity.version.to_owned()),
            ("network", identity.network.clone()),
            ("service", identity.service.clone()),
            ("durability", identity.durability.clone()),
        ];
        self.validator.get_or_create(&labels).set(1);
        set(&self.weight, identity.weight);
        set(&self.weight_total, identity.weight_total);
        set(&self.members, identity.members as u64);
        set(&self.quorum, identity.quorum);
    }

    pub(super) fn show(&self, figures: &HostFigures) {
        set(&self.uptime, figures.uptime_s);
        set(&self.resident, figures.process.resident_bytes.unwrap_or(0));
        set(&self.open_files, figures.process.open_files.unwrap_or(0));
        let cpu_seconds = figures.process.cpu_seconds.unwrap_or(0.0);
        self.cpu.inner().store(cpu_seconds.to_bits(), Ordering::Relaxed);
        set(&self.log_disk, figures.disk.log_bytes);
        set(&self.state_disk, figures.disk.state_bytes);
        set(&self.disk_free, figures.disk.free_bytes.unwrap_or(0));
        if let Some(room) = &figures.room {
            set(&self.disk_low, room.low_bytes);
            set(&self.disk_needed, room.needed_bytes);
            set(&self.disk_reserve, room.reserve_bytes);
        }
        set(&self.peers, figures.peers as u64);
        set(&self.clients, figures.clients as u64);
        for (lane, frames, bytes) in &figures.outboxes {
            let labels = vec![("lane", lane_name(*lane).to_owned())];
            set(&self.outbox_frames.get_or_create(&labels), *frames as u64);
            set(&self.outbox_bytes.get_or_create(&labels), *bytes as u64);
        }
        for (queue, events) in &figures.events {
            let labels = vec![("queue", (*queue).to_owned())];
            set(&self.events.get_or_create(&labels), *events as u64);
        }
        set(&self.log_backlog, figures.log_backlog_bytes);
    }
}

fn set(gauge: &Gauge, value: u64) {
    gauge.set(value.cast_signed());
}

impl Process {
    /// Reads the current figures.
    pub(crate) fn now() -> Self {
        Self {
            resident_bytes: resident_bytes(),
            cpu_seconds: processor_seconds(),
            open_files: open_files(),
        }
    }
}

impl Disk {
    /// Figures of a data folder now. Files that come or go meanwhile do no harm.
    pub(crate) fn of(data_dir: &Path) -> Self {
        let system = rustix::fs::statvfs(data_dir).ok();
        Self {
            log_bytes: bytes_in(&data_dir.join("log")) + bytes_in(&data_dir.join("bodies")),
            state_bytes: bytes_in(&data_dir.join("state")),
            free_bytes: system.map(|system| system.f_bavail.saturating_mul(system.f_frsize)),
        }
    }

    /// Bytes of the files in a folder; 0 if there is none.
    pub(crate) fn in_folder(folder: &Path) -> u64 {
        bytes_in(folder)
    }
}

/// The sizes of the files in a folder, or of a file.
fn bytes_in(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else {
        return std::fs::metadata(path).map_or(0, |file| file.len());
    };
    let sizes = entries.flatten().filter_map(|entry| entry.metadata().ok());
    sizes.filter(std::fs::Metadata::is_file).map(|file| file.len()).sum()
}

/// Linux: `VmRSS` in `/proc/self/status`, in kB.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// Linux: user and system time in `/proc/self/stat`, in ticks of 10 ms (`USER_HZ` is 100 on every
/// Linux that anybody runs). The fields count from the end of the name, which may hold spaces.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = text.rsplit_once(") ")?;
    let mut times = fields.split(' ').skip(11).map(str::parse::<u32>);
    let ticks = f64::from(times.next()?.ok()?) + f64::from(times.next()?.ok()?);
    Some(ticks / 100.0)
}

/// Linux: the entries of `/proc/self/fd`.
fn open_files() -> Option<u64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}
