//! What cannot be computed is refused, and never left out without a word.

use sizeleak_inference::space::{CommandSpace, Premises, PriorName, SpaceError};
use sizeleak_model::Model;

fn home() -> Model {
    Model::from_toml(include_str!("../../../examples/home/model.toml")).unwrap()
}

#[test]
fn a_decay_that_makes_commands_too_improbable_is_refused() {
    for prior in [PriorName::Learned, PriorName::Devices] {
        let space = |decay| CommandSpace::new(&home(), &Premises { prior, decay: Some(decay) }).map(|_| ());
        assert_eq!(space(1e-300), Err(SpaceError::OutOfRange));
        assert_eq!(space(1e-12), Ok(()));
    }
}

#[test]
fn more_devices_than_can_be_counted_are_refused() {
    let space = |count| {
        let mut home = home();
        home.inventory.as_mut().unwrap().devices.iter_mut().for_each(|device| device.count = count);
        CommandSpace::new(&home, &Premises { prior: PriorName::Devices, decay: Some(0.75) }).map(|_| ())
    };
    assert_eq!(space(4_000_000_000), Err(SpaceError::OutOfRange));
    assert_eq!(space(1000), Ok(()));
}

#[test]
fn commands_of_fewer_than_no_bytes_are_refused() {
    let mut home = home();
    let smallest = home.actions.iter().map(|action| action.size).min().unwrap();
    let premises = Premises { prior: PriorName::Flat, decay: None };
    home.overhead = -smallest;
    assert!(CommandSpace::new(&home, &premises).is_ok());
    home.overhead -= 1;
    let error = CommandSpace::new(&home, &premises).err();
    assert_eq!(error, Some(SpaceError::NegativeSize { overhead: -smallest - 1, action: smallest }));
}
