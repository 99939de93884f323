//! Fields of /etc/os-release, which names the operating system.

/// Returns the value of the field `name` in `text`, the content of /etc/os-release; `None` if it is
/// missing.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut values = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.next().map(|value| value.trim_matches('"'))
}

/// Returns the codename of this system's Debian suite, such as bookworm; `None` if this system is
/// not Debian.
pub fn debian_suite() -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    suite(&text).map(str::to_owned)
}

fn suite(text: &str) -> Option<&str> {
    let codename = field(text, "VERSION_CODENAME");
    codename.filter(|_| field(text, "ID") == Some("debian"))
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

    #[test]
    fn only_debian_has_a_debian_suite() {
        let text = "ID=debian\nVERSION_CODENAME=trixie\n";
        assert_eq!(suite(text), Some("trixie"));
        let text = "ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n";
        assert_eq!(suite(text), None);
    }
}
