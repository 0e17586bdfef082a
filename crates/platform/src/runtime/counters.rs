//! Counters of a stage, each named once: as a field and in `summary`.

/// Defines a struct with these counters, and `all`, which returns them by their names in `summary`, in that order. Those that
/// are `rare` come last, and only if they have counted anything. Saved states have the fields in the order given.
#[macro_export]
macro_rules! counters {
    (
        $name:ident
        first { $($(#[$first_meta:meta])* $first_visible:vis $first:ident: $first_type:ty,)* }
        rare { $($rare:ident)* }
        counted { $($counter:ident)* }
        last { $($(#[$last_meta:meta])* $last_visible:vis $last:ident: $last_type:ty,)* }
    ) => {
        #[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
        pub(crate) struct $name {
            $($(#[$first_meta])* $first_visible $first: $first_type,)*
            $(pub(crate) $rare: u64,)*
            $(pub(crate) $counter: u64,)*
            $($(#[$last_meta])* $last_visible $last: $last_type,)*
        }

        impl $name {
            pub(crate) fn all(&self) -> Vec<(&'static str, u64)> {
                let rare: &[(&str, u64)] = &[$((stringify!($rare), self.$rare)),*];
                let rare = rare.iter().filter(|(_, count)| *count > 0).copied();
                [$((stringify!($counter), self.$counter)),*].into_iter().chain(rare).collect()
            }
        }
    };
}
