//! jieba's dictionary: user words, and what preloading it saves.
use crate::support::clients::wait_until;
use neardup_tests::{connect, own_server};
use postgres::Client;

type Outcome = anyhow::Result<()>;

/// A text whose words depend on what jieba knows.
const TEXT: &str = "李小福是创新办主任也是云计算方面的专家";
const PLAIN: &str = "主任 也 云 创新 办 专家 方面 是 是 李小福 的 计算";
const WITH_USER_WORDS: &str = "专家 主任 也 云计算 创新办 方面 是 是 李小福 的";

/// The words that a session finds in the text, in the order of their bytes.
fn words(client: &mut Client) -> anyhow::Result<String> {
    let query = "SELECT string_agg(repeat(feature || ' ', weight::int), '' ORDER BY feature COLLATE \"C\") \
        FROM neardup_features($1, tokens => 'jieba', shingle => 1, weight => 'tf')";
    let words: String = client.query_one(query, &[&TEXT])?.get(0);
    Ok(sorted(&words))
}

fn sorted(words: &str) -> String {
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.sort_unstable();
    words.join(" ")
}

fn set_user_words(client: &mut Client, words: &str) -> Outcome {
    client.batch_execute("LOAD 'neardup'")?;
    client.batch_execute(&format!(
        "ALTER SYSTEM SET neardup.jieba_user_words = '{words}'"
    ))?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    Ok(())
}

#[test]
fn user_words_reach_all_sessions_at_a_reload() -> Outcome {
    let server = own_server("user_words", &[])?;
    let mut client = connect(&server.conninfo("postgres"))?;
    client.batch_execute("CREATE EXTENSION neardup")?;
    let mut idle = connect(&server.conninfo("postgres"))?;
    for client in [&mut client, &mut idle] {
        assert_eq!(words(client)?, sorted(PLAIN));
    }
    // Nobody can set them for a session, and only who may alter the system can set them at all.
    let refused = client.batch_execute("SET neardup.jieba_user_words = '云计算'");
    assert_eq!(refused.unwrap_err().code().unwrap().code(), "55P02");
    for (list, why) in [
        ("word", "22023"),
        ("云计算 0", "22023"),
        ("云计算 很多", "22023"),
    ] {
        let refused = set_user_words(&mut client, list).unwrap_err();
        let refused = refused.downcast_ref::<postgres::Error>().unwrap();
        assert_eq!(refused.code().unwrap().code(), why, "{list}");
    }

    set_user_words(&mut client, "创新办, 云计算 5")?;
    let mut new = connect(&server.conninfo("postgres"))?;
    for client in [&mut client, &mut idle, &mut new] {
        wait_until(
            client,
            "SELECT current_setting('neardup.jieba_user_words', true) <> ''",
        )?;
        assert_eq!(words(client)?, sorted(WITH_USER_WORDS));
    }
    // In parallel workers too.
    new.batch_execute(
        "CREATE TABLE docs AS SELECT $$李小福是创新办主任也是云计算方面的专家$$::text AS body, n FROM generate_series(1, 5000) n;
         ANALYZE docs;
         SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
         SET max_parallel_workers_per_gather = 2",
    )?;
    let query = "SELECT min(simhash(body, tokens => 'jieba')::text), max(simhash(body, tokens => 'jieba')::text) FROM docs";
    let plan: Vec<String> = new
        .query(&format!("EXPLAIN {query}"), &[])?
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert!(
        plan.iter().any(|line| line.contains("Workers Planned")),
        "{plan:?}"
    );
    let found = new.query_one(query, &[])?;
    let alone: String = idle
        .query_one("SELECT simhash($1, tokens => 'jieba')::text", &[&TEXT])?
        .get(0);
    assert_eq!(
        [0, 1].map(|at| found.get::<_, String>(at)),
        [alone.clone(), alone]
    );

    client.batch_execute("ALTER SYSTEM RESET neardup.jieba_user_words")?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    for client in [&mut client, &mut idle, &mut new] {
        wait_until(
            client,
            "SELECT current_setting('neardup.jieba_user_words') = ''",
        )?;
        assert_eq!(words(client)?, sorted(PLAIN));
    }
    Ok(())
}

#[test]
fn whoever_sets_user_words_is_warned() -> Outcome {
    let server = own_server("user_words_warning", &[])?;
    let run = |sql: &str| -> anyhow::Result<String> {
        let output = server
            .psql("postgres")
            .args(["-X", "-c", "LOAD 'neardup'", "-c", sql])
            .output()?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let warned = run("ALTER SYSTEM SET neardup.jieba_user_words = '云计算'")?;
    assert!(
        warned.contains("WARNING") && warned.contains("change the fingerprints"),
        "{warned}"
    );
    // Once it is in force, it is no news.
    let mut client = connect(&server.conninfo("postgres"))?;
    client.batch_execute("LOAD 'neardup'; SELECT pg_reload_conf()")?;
    wait_until(
        &mut client,
        "SELECT current_setting('neardup.jieba_user_words') <> ''",
    )?;
    let again = run("ALTER SYSTEM SET neardup.jieba_user_words = '云计算'")?;
    assert!(!again.contains("WARNING"), "{again}");
    Ok(())
}

/// Memory in kB that a process has for itself alone.
#[cfg(target_os = "linux")]
fn private_memory(pid: i32) -> anyhow::Result<u64> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let kilobytes = |line: &str| {
        line.split_whitespace()
            .nth(1)
            .and_then(|n| n.parse::<u64>().ok())
    };
    Ok(maps
        .lines()
        .filter(|line| line.starts_with("Private_Dirty"))
        .filter_map(kilobytes)
        .sum())
}

/// What the first use of jieba costs a backend: its dictionary, unless that was preloaded.
#[cfg(target_os = "linux")]
#[test]
fn a_preloaded_dictionary_is_shared() -> Outcome {
    let grown_by_first_use = |preload| -> anyhow::Result<u64> {
        let settings = [
            ("shared_preload_libraries", preload),
            ("neardup.jieba_user_words", "创新办, 云计算 5"),
        ];
        let server = own_server("preload", &settings)?;
        connect(&server.conninfo("postgres"))?.batch_execute("CREATE EXTENSION neardup")?;
        let mut client = connect(&server.conninfo("postgres"))?;
        let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
        // Everything but the dictionary is there.
        client.query_one(
            "SELECT simhash($1), count(*) FROM neardup_features($1, shingle => 1)",
            &[&TEXT],
        )?;
        let before = private_memory(pid)?;
        assert_eq!(words(&mut client)?, sorted(WITH_USER_WORDS));
        Ok(private_memory(pid)?.saturating_sub(before))
    };
    let (alone, shared) = (grown_by_first_use("")?, grown_by_first_use("neardup")?);
    assert!(alone > 20 << 10, "{alone} kB");
    assert!(shared < 4 << 10, "{shared} kB");
    Ok(())
}
