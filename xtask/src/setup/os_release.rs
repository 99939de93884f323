//! Fields of /etc/os-release, which names the operating system.

/// Returns the value of the field `name` in `text`, the content of /etc/os-release; `None` if it is
/// missing.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut values = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.next().map(|value| value.trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_systems_names() {
        let text = "NAME=x\nID=linuxmint\nID_LIKE=\"ubuntu debian\"\n";
        assert_eq!(field(text, "ID"), Some("linuxmint"));
        assert_eq!(field(text, "ID_LIKE"), Some("ubuntu debian"));
        assert_eq!(field("", "ID"), None);
    }
}
