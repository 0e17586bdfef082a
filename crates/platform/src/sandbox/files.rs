//! Landlock: the files that a process can open.

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::sandbox::Access;

const VERSION: ABI = ABI::V6;

pub(crate) fn limit(access: &Access) -> Result<(), String> {
    match restrict(access) {
        Ok(RulesetStatus::NotEnforced) => Err("this kernel has no Landlock, so all files can still be opened".into()),
        Ok(_) => Ok(()),
        Err(error) => Err(format!("Landlock fails, so all files can still be opened: {error}")),
    }
}

fn restrict(access: &Access) -> Result<RulesetStatus, RulesetError> {
    let reading = AccessFs::ReadFile | AccessFs::ReadDir;
    let writing = reading
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::RemoveFile
        | AccessFs::MakeDir
        | AccessFs::RemoveDir
        | AccessFs::Refer;
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let mut scopes = Scope::from_all(VERSION);
    if access.signals_programs {
        scopes.remove(Scope::Signal);
    }
    let ruleset = ruleset.handle_access(AccessFs::from_all(VERSION))?.scope(scopes)?;
    let mut ruleset = ruleset.create()?;
    let readable = access.reads.iter().map(|path| (path, reading));
    for (path, rights) in readable.chain(access.writes.iter().map(|path| (path, writing))) {
        let Ok(file) = PathFd::new(path) else {
            // What is missing now is an error when it is opened.
            continue;
        };
        let rights: BitFlags<AccessFs> = if path.is_dir() { rights } else { rights & AccessFs::from_file(VERSION) };
        // A pipe without a name takes no rule and needs none.
        let _added = (&mut ruleset).add_rule(PathBeneath::new(file, rights));
    }
    Ok(ruleset.restrict_self()?.ruleset)
}
