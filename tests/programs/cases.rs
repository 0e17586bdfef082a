//! What the programs print: each page of `tests/cases` holds.

use std::collections::BTreeSet;
use std::fs;

use support::cases::assert_hold;
use support::programs::root;

/// A test for each of these pages.
macro_rules! pages {
    ($($page:ident)*) => {
        $(
            #[test]
            fn $page() {
                assert_hold(stringify!($page));
            }
        )*

        #[test]
        fn every_page_is_tested() {
            let pages = fs::read_dir(root().join("tests/cases")).unwrap();
            let pages: BTreeSet<String> = pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
            assert_eq!(pages, [$(concat!(stringify!($page), ".md")),*].map(str::to_owned).into());
        }
    };
}

pages! {
    archive archives archives_kept audit bad_input check_stage command_line evaluated_figures evaluation
    evaluation_refused exports foreign_stages inputs interfaces kinds_without_a_model label_clocks label_forms
    learned_sizes learning learning_curves many_files measure messages one_or_none output_names outputs pad pictures
    plot profiles record report report_inputs saved_streams scenarios states strip survey time_ranges tunnels unsaid
}
