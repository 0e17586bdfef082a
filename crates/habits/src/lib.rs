//! What a home usually does and when, learned from answers that are uncertain, and what deviates from it.

mod budget;
mod calendar;
mod detector;
mod deviation;
mod home;
mod homes;
mod profile;
mod rates;
mod sighting;
mod slots;

pub use budget::Budget;
pub use detector::Detector;
pub use deviation::{Deviation, What};
pub use home::{Home, MEMORY_DAYS};
pub use homes::{Disorder, HabitPrior, Homes, SeenFlows};
pub use profile::{ActionWeek, Profile, ProfileError, Routine};
pub use rates::Components;
pub use sighting::{Actions, CommandClass, Sighting};
