//! The bundled home, whose figures another program computed by listing its commands.

use std::collections::BTreeSet;
use std::error::Error;

use sizeleak_audit::leakage::Audit;
use sizeleak_inference::space::{CommandSpace, Premises, PriorName, SizeRow, SpaceError};
use sizeleak_model::{Action, Basis, Device, Inventory, Model, ModelSet};
use support::joint::rows_of_groups;

fn home() -> Result<Model, Box<dyn Error>> {
    let models = ModelSet::read(&["examples/home/model.toml"])?;
    Ok(models.into_sections().into_iter().next().ok_or("a model has a section")?)
}

fn rows(prior: PriorName, decay: Option<f64>) -> Result<Vec<SizeRow>, Box<dyn Error>> {
    Ok(CommandSpace::new(&home()?, &Premises { prior, decay })?.size_rows()?)
}

#[test]
fn its_sizes_name_two_thirds_of_commands() -> Result<(), Box<dyn Error>> {
    let rows = rows(PriorName::Devices, Some(0.75))?;
    let commands: f64 = rows.iter().map(|row| row.commands).sum();
    assert_eq!((commands, rows.len()), (85_932.0, 510));
    let guessing = rows.iter().map(|row| row.greatest).fold(0.0, f64::max);
    let named: f64 = rows.iter().map(|row| row.greatest).sum();
    assert!((guessing - 0.056_368_530).abs() < 1e-9 && (named - 0.657_982_298).abs() < 1e-9, "{guessing} {named}");
    Ok(())
}

#[test]
fn rows_without_a_list_of_commands_are_those_of_the_list() -> Result<(), Box<dyn Error>> {
    for (prior, decay) in [(PriorName::Learned, None), (PriorName::Devices, Some(0.75)), (PriorName::Flat, None)] {
        let space = CommandSpace::new(&home()?, &Premises { prior, decay })?;
        let groups = space.groups().ok_or("the home has few commands")?;
        let (summed, listed) = (space.size_rows()?, rows_of_groups(&groups));
        assert_eq!(summed.len(), listed.len());
        for (one, other) in summed.iter().zip(&listed) {
            assert_eq!((one.bytes, one.commands), (other.bytes, other.commands));
            let pairs =
                [(one.probability, other.probability), (one.greatest, other.greatest), (one.plogp, other.plogp)];
            assert!(pairs.iter().all(|(one, other)| (one - other).abs() < 1e-12), "{prior:?} {pairs:?}");
        }
        assert!((summed.iter().map(|row| row.probability).sum::<f64>() - 1.0).abs() < 1e-12);
    }
    Ok(())
}

#[test]
fn replies_that_tell_actions_apart_name_nearly_all_commands() -> Result<(), Box<dyn Error>> {
    let mut model = home()?;
    let devices = &mut model.inventory.as_mut().ok_or("the home has an inventory")?.devices;
    // Fewer plugs: still too many combinations of replies that may be lost.
    for device in devices {
        device.count = device.count.min(9);
    }
    let replies = model.single_replies.as_mut().ok_or("the home has single replies")?;
    let class = replies.classes.first().cloned().ok_or("they have a class")?;
    replies.classes = vec![class; 7];
    replies.per_command = vec![0; 7];
    replies.per_action = (0..7).map(|action| (0..7).map(|class| u32::from(class == action)).collect()).collect();
    let audit = Audit::new(&model, &Premises { prior: PriorName::Learned, decay: None })?;
    let learned = audit.with_replies.ok_or("there are not too many combinations")?;
    assert!(!learned.is_exact && learned.command.named > 0.999, "{}", learned.command.named);
    Ok(())
}

#[test]
fn an_action_collides_with_two_others() -> Result<(), Box<dyn Error>> {
    let mut model = home()?;
    let colour = model.actions.iter_mut().find(|action| action.name == "colour").ok_or("the home has it")?;
    // As long as `on` and `dim`, which are 28 and 36 bytes.
    *colour = Action::new("colour", 64);
    let audit = Audit::new(&model, &Premises { prior: PriorName::Learned, decay: None })?;
    let sizes: Vec<i64> = model.actions.iter().map(|action| action.size).collect();
    let bytes =
        |counts: &[u32]| -> i64 { counts.iter().zip(&sizes).map(|(count, size)| i64::from(*count) * size).sum() };
    let of_64 = audit.collisions.iter().find(|collision| collision.bytes == 64).ok_or("a collision")?;
    let numbers: Vec<u32> = of_64.commands.iter().map(|counts| counts.iter().sum()).collect();
    assert_eq!(numbers[..2], [1, 2], "the action alone, then two others");
    for collision in &audit.collisions {
        assert!(
            collision.commands.len() > 1 && collision.commands.iter().all(|counts| bytes(counts) == collision.bytes)
        );
    }
    // Of all pairs of commands of one or two actions, those of one size are in one collision.
    let pairs: usize = audit.collisions.iter().map(|collision| collision.commands.len()).sum();
    let mut all: Vec<i64> = sizes.clone();
    for (at, one) in sizes.iter().enumerate() {
        all.extend(sizes.iter().skip(at).map(|other| one + other));
    }
    assert_eq!(pairs, all.iter().filter(|size| all.iter().filter(|other| other == size).count() > 1).count());
    Ok(())
}

#[test]
fn without_an_inventory_long_commands_are_left_out_and_it_is_said() -> Result<(), Box<dyn Error>> {
    let mut model = home()?;
    model.inventory = None;
    let audit = Audit::new(&model, &Premises { prior: PriorName::Learned, decay: Some(0.9) })?;
    assert_eq!((audit.most_actions, audit.by_size.kinds), (64, None));
    assert!((audit.left_out - 0.9_f64.powi(64)).abs() < 1e-12, "{}", audit.left_out);
    Ok(())
}

#[test]
fn a_block_cipher_hides_small_differences() -> Result<(), Box<dyn Error>> {
    let premises = Premises { prior: PriorName::Learned, decay: None };
    let exact = Audit::new(&home()?, &premises)?;
    let mut model = home()?;
    model.learned.basis = Basis::Plaintext { cipher_suite: "CBC".to_owned(), record_overhead: [37, 52] };
    let blocks = Audit::new(&model, &premises)?;
    assert_eq!((exact.block_bytes, blocks.block_bytes), (None, Some(16)));
    assert!(blocks.with_known_epsilon.command.named < 0.5 * exact.with_known_epsilon.command.named);
    // Sizes from 95 to 67 + 4 · 40 + 12 · 34 bytes, and 37 bytes more of the cipher.
    assert_eq!(blocks.sizes, (635 + 37_usize).div_ceil(16) - (95 + 37_usize).div_ceil(16) + 1);
    Ok(())
}

/// What a record adds to a plaintext: a vector of 16 bytes; behind it the plaintext and at least one byte of padding up to
/// a multiple of 16, and a MAC that is encrypted with them (RFC 5246, section 6.2.3.2) or comes behind them (RFC 7366).
fn record_length(plaintext: u64, mac: u64, encrypt_then_mac: bool) -> u64 {
    let [inside, outside] = if encrypt_then_mac { [0, mac] } else { [mac, 0] };
    16 + (plaintext + inside + 1).div_ceil(16) * 16 + outside
}

#[test]
fn sizes_that_look_alike_are_those_of_records_of_one_length() -> Result<(), Box<dyn Error>> {
    // By hand: with SHA-1, 11 bytes fill a block that holds the MAC, too, and 15 a block without it.
    assert_eq!([11, 12].map(|plaintext| record_length(plaintext, 20, false)), [48, 64]);
    assert_eq!([15, 16].map(|plaintext| record_length(plaintext, 20, true)), [52, 68]);
    assert_eq!([15, 16].map(|plaintext| record_length(plaintext, 32, false)), [64, 80]);
    assert_eq!([15, 16].map(|plaintext| record_length(plaintext, 32, true)), [64, 80]);
    let premises = Premises { prior: PriorName::Learned, decay: None };
    let mut named = Vec::new();
    for (suite, mac) in [("SHA", 20_u32), ("SHA256", 32), ("SHA384", 48)] {
        for encrypt_then_mac in [false, true] {
            let mut model = home()?;
            let record_overhead = [16 + mac + 1, 16 + mac + 16];
            model.learned.basis = Basis::Plaintext { cipher_suite: suite.to_owned(), record_overhead };
            // Records of all lengths that commands have, and the greatest plaintext that each may hold.
            let length = |plaintext| record_length(plaintext, mac.into(), encrypt_then_mac);
            let greatest = |length: u64| length.saturating_sub(u64::from(record_overhead[0]));
            model.learned.observe_blocks((95..=635).map(|size| greatest(length(size)).cast_signed()));
            let blocks = model.learned.blocks().ok_or("no blocks")?;
            for size in 0..700 {
                assert_eq!(blocks.greatest(size), greatest(length(size)), "{suite} {encrypt_then_mac} {size}");
            }
            let is_usual = model.learned.block_rest.is_none();
            assert_eq!(is_usual, !(suite == "SHA" && encrypt_then_mac), "{suite} {encrypt_then_mac}");
            let audit = Audit::new(&model, &premises)?;
            let lengths: BTreeSet<u64> = (95..=635).map(length).collect();
            assert_eq!((audit.block_bytes, audit.sizes), (Some(16), lengths.len()), "{suite} {encrypt_then_mac}");
            named.push(audit.with_known_epsilon.command.named);
        }
    }
    // Blocks that end at other sizes hide other commands; those of a MAC of whole blocks end at the same sizes.
    let [sha_1, sha_1_behind, others @ ..] = &named[..] else { return Err("too few".into()) };
    assert!((sha_1 - sha_1_behind).abs() > 1e-6, "{named:?}");
    assert!(others.iter().all(|named| (named - sha_1_behind).abs() < 1e-12), "{named:?}");
    Ok(())
}

#[test]
fn sizes_and_inventories_out_of_proportion_are_refused() -> Result<(), Box<dyn Error>> {
    let premises = Premises { prior: PriorName::Learned, decay: None };
    let mut model = home()?;
    model.actions.push(Action::new("huge", 1 << 40));
    model.inventory = None;
    assert!(matches!(CommandSpace::new(&model, &premises), Err(SpaceError::TooWide(..))));
    let mut model = home()?;
    let kind = |name: &str, actions: &[&str]| Device {
        name: name.to_owned(),
        count: 60,
        actions: actions.iter().copied().map(str::to_owned).collect(),
        safe: true,
    };
    let one = ["on", "off", "toggle", "timer", "dim", "white", "colour"];
    let kinds = one.iter().zip(1..).map(|(name, several)| kind(name, one.get(..several).unwrap_or_default()));
    model.inventory = Some(Inventory { devices: kinds.collect() });
    assert_eq!(CommandSpace::new(&model, &premises).err(), Some(SpaceError::TooMany));
    Ok(())
}
