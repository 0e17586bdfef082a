//! What a home usually does and when, learned from answers that are uncertain, and what deviates from it.

mod budget;
mod calendar;
mod detector;
mod deviation;
mod habit_prior;
mod home;
mod homes;
mod profile;
mod rates;
mod sighting;
mod slots;
mod tail;
mod week;

pub use budget::Budget;
pub use detector::Detector;
pub use deviation::{Deviation, What};
pub use habit_prior::HabitPrior;
pub use home::{Home, MEMORY_DAYS};
pub use homes::{Homes, SeenFlows};
pub use profile::{Profile, ProfileError, Routine};
pub use rates::Components;
pub use sighting::{Actions, Sighting};
pub use week::ActionWeek;
