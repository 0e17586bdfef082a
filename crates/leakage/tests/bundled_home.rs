//! The bundled home, whose figures another program computed by listing its commands.

use std::error::Error;

use sizeleak_leakage::{CommandSpace, Premises, PriorKind, SizeRow};
use sizeleak_model::{Model, ModelSet};

fn home() -> Result<Model, Box<dyn Error>> {
    let models = ModelSet::read(&["../../examples/home/model.toml"])?;
    Ok(models.into_sections().into_iter().next().ok_or("a model has a section")?)
}

fn rows(prior: PriorKind, decay: Option<f64>) -> Result<Vec<SizeRow>, Box<dyn Error>> {
    Ok(CommandSpace::new(&home()?, &Premises { prior, decay })?.size_rows()?)
}

#[test]
fn its_sizes_name_two_thirds_of_commands() -> Result<(), Box<dyn Error>> {
    let rows = rows(PriorKind::Devices, Some(0.75))?;
    let commands: f64 = rows.iter().map(|row| row.commands).sum();
    assert_eq!((commands, rows.len()), (85_932.0, 510));
    let guessing = rows.iter().map(|row| row.greatest).fold(0.0, f64::max);
    let named: f64 = rows.iter().map(|row| row.greatest).sum();
    assert!((guessing - 0.056_368_530).abs() < 1e-9 && (named - 0.657_982_298).abs() < 1e-9, "{guessing} {named}");
    Ok(())
}

#[test]
fn rows_without_a_list_of_commands_are_those_of_the_list() -> Result<(), Box<dyn Error>> {
    for (prior, decay) in [(PriorKind::Learned, None), (PriorKind::Devices, Some(0.75)), (PriorKind::Flat, None)] {
        let space = CommandSpace::new(&home()?, &Premises { prior, decay })?;
        let groups = space.groups().ok_or("the home has few commands")?;
        let (summed, listed) = (space.size_rows()?, SizeRow::of_groups(&groups));
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
