//! "Did you mean ..?"

/// The name that is most like `wrong`, if one is near enough to be meant: a letter in three may be
/// wrong, missing, too many or swapped with its neighbour.
pub fn nearest<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let wrong = wrong.to_lowercase();
    let most = (wrong.chars().count() / 3).max(1);
    names
        .into_iter()
        .map(|name| {
            (
                strsim::damerau_levenshtein(&wrong, &name.to_lowercase()),
                name,
            )
        })
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, name)| name)
}

/// What to say beside a name that doesn't exist: the one that is meant, or all that there are.
pub(crate) fn hint<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str> + Clone) -> String {
    match nearest(wrong, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let names: Vec<_> = names.into_iter().collect();
            format!("there are {}", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn finds_what_was_meant() {
        assert_eq!(nearest("wbe", ["api", "web"]), Some("web"));
        assert_eq!(
            nearest("requrie_key", ["log", "require_key"]),
            Some("require_key")
        );
        assert_eq!(nearest("Threads", ["threads", "thread"]), Some("threads"));
        assert_eq!(nearest("zzz", ["api", "web"]), None);
        assert_eq!(nearest("ab", ["xy"]), None);
    }
}
