//! Tests as the rows of a table.

/// Tests of one check, each with the arguments of its row: `name(arguments);`.
#[macro_export]
macro_rules! tests_of {
    ($check:ident { $($(#[$attribute:meta])* $name:ident($($argument:expr),* $(,)?);)* }) => {
        $(
            $(#[$attribute])*
            #[test]
            fn $name() {
                $check($($argument),*);
            }
        )*
    };
}
