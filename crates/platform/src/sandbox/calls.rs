//! seccomp: the system calls that a process gives up.
//!
//! This is a list of what is denied, not of what is allowed: the calls that a program makes depend on its libraries and
//! their versions, and one that is forgotten would end a run in its middle. A denied call fails like any other
//! (`EPERM`), so a library that tries one goes on without it.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use libc::{ENOSYS, EPERM, c_long};
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter_all_threads,
};

/// Calls that are never needed once everything is open.
const DENIED: &[c_long] = &[
    // Starting programs, and looking into others.
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Connections; a socket that is open can still be read, and one that listens still accepts.
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    // File systems and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mknodat,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // The kernel itself, and the ways into it that other programs' faults have used most.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_fanotify_init,
    libc::SYS_personality,
    libc::SYS_acct,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    // Other users.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_capset,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
];

/// `ioctl` requests that type into a terminal as if its user did.
const TYPING: [u64; 2] = [TIOCSTI, TIOCLINUX];

const TIOCSTI: u64 = 0x5412;

const TIOCLINUX: u64 = 0x541c;

/// The bit that marks a call of the x32 interface; the numbers below it are those of the usual calls.
const X32: c_long = 0x4000_0000;

pub(crate) fn limit() -> Result<(), String> {
    let applied = programs()
        .map_err(Error::from)
        .and_then(|programs| programs.iter().try_for_each(|program| apply_filter_all_threads(program)));
    applied
        .map_err(|error| format!("this kernel has no seccomp filters, so all system calls can still be made: {error}"))
}

fn programs() -> Result<[BpfProgram; 2], BackendError> {
    let processor = TargetArch::try_from(ARCH)?;
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let typing = TYPING.into_iter().map(|request| when(1, SeccompCmpOp::Eq, request));
    rules.insert(libc::SYS_ioctl, typing.collect::<Result<_, _>>()?);
    // A thread is a process that shares everything with this one; any other is not needed.
    let thread = u64::from(libc::CLONE_THREAD.cast_unsigned());
    rules.insert(libc::SYS_clone, vec![when(0, SeccompCmpOp::MaskedEq(thread), 0)?]);
    // A filter cannot see the flags of this one. Without it, libraries fall back on `clone`.
    let unseen = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let program = |rules: BTreeMap<c_long, Vec<SeccompRule>>, error: i32| {
        let denied = SeccompAction::Errno(error.cast_unsigned());
        SeccompFilter::new(under_all_numbers(rules), SeccompAction::Allow, denied, processor)?.try_into()
    };
    Ok([program(rules, EPERM)?, program(unseen, ENOSYS)?])
}

fn when(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?])
}

/// The same rules for the x32 interface, if there is one.
fn under_all_numbers(rules: BTreeMap<c_long, Vec<SeccompRule>>) -> BTreeMap<c_long, Vec<SeccompRule>> {
    if ARCH != "x86_64" {
        return rules;
    }
    rules.into_iter().flat_map(|(call, rules)| [(call, rules.clone()), (call | X32, rules)]).collect()
}
