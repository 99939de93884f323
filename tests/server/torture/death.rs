//! Death and recovery of a server.
use super::report::Round;
use crate::support::Outcome;
use crate::support::data::Random;
use crate::support::waiting::{moment, poll};
use crate::support::workload::Busy;
use anyhow::{Result, ensure};
use neardup_pgserver::Server;
use neardup_tests::connect;
use postgres::Client;

/// Ways to die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// SIGKILL of all processes.
    KillAll,
    /// SIGKILL of one client's process: the server ends all others and recovers by itself.
    KillBackend,
    /// `pg_ctl stop -m immediate`.
    StopImmediately,
    /// SIGKILL of a process of the server's own.
    KillHelper { process: i32 },
}

impl Death {
    /// Returns the death of this round, each kind in turn.
    pub fn new(number: u64, client: &mut Client, random: &mut Random) -> Result<Self> {
        Ok(match number % 4 {
            1 => Death::KillAll,
            2 => Death::KillBackend,
            3 => Death::StopImmediately,
            _ => {
                let helpers = client.query(
                    "SELECT pid FROM pg_stat_activity WHERE backend_type IN \
                     ('checkpointer', 'background writer', 'walwriter') ORDER BY backend_type",
                    &[],
                )?;
                let helpers: Vec<i32> = helpers.iter().map(|row| row.get(0)).collect();
                Death::KillHelper {
                    process: random.pick(&helpers),
                }
            }
        })
    }

    /// Inflicts the death. Returns the offset in the server's log where later messages begin.
    pub fn befall(
        self,
        server: &mut Server,
        clients: &[Busy],
        random: &mut Random,
        round: &mut Round,
    ) -> Result<usize> {
        no_alarm(server)?;
        let from = log(server)?.len();
        match self {
            Death::KillAll => {
                round.death = "kill -9 of the server".to_owned();
                server.kill_9()?;
                return Ok(0);
            }
            Death::StopImmediately => {
                round.death = "immediate stop".to_owned();
                server.stop_immediately()?;
                return Ok(0);
            }
            Death::KillBackend => {
                let victim = &clients[random.below(clients.len() as u64) as usize];
                round.death = format!("kill -9 of a backend ({})", victim.job);
                ensure!(server.kill_9_child(victim.backend)?, "no such backend");
            }
            Death::KillHelper { process } => {
                round.death = "kill -9 of a helper process".to_owned();
                ensure!(server.kill_9_child(process)?, "no such process");
            }
        }
        Ok(from)
    }
}

/// Restarts a dead server, or waits for one that recovers by itself. The server may die again
/// meanwhile. `from` is the offset in the log where this life begins.
pub fn recover(
    server: &mut Server,
    from: usize,
    random: &mut Random,
    round: &mut Round,
) -> Outcome {
    let mut from = from;
    for _ in 0..random.pick(&[0, 0, 1, 2]) {
        server.begin_start()?;
        poll("the server recovers", || {
            let log = log(server)?;
            Ok(log[from..].contains("redo starts at") || is_up(&log[from..]))
        })?;
        moment(random.below(60));
        let up = is_up(&log(server)?[from..]);
        no_alarm(server)?;
        server.kill_9()?;
        from = 0;
        if up {
            round.killed_after_recovery += 1;
        } else {
            round.killed_in_recovery += 1;
        }
    }
    server.start()?;
    // The postmaster survives if the server restarts by itself, so the log shows the recovery.
    let conninfo = server.conninfo("postgres");
    poll("the server is up", || {
        Ok(is_up(&log(server)?[from..]) && connect(&conninfo).is_ok())
    })
}

fn is_up(log: &str) -> bool {
    log.contains("ready to accept connections")
}

fn log(server: &Server) -> Result<String> {
    let bytes = std::fs::read(server.log())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Asserts that the server's log has only deaths that this test inflicted. Clients assume that one
/// of them ended a lost connection.
pub fn no_alarm(server: &Server) -> Outcome {
    let log = log(server)?;
    let alarm = log.lines().find(|line| {
        line.contains("PANIC:")
            || line.contains("TRAP:")
            || line.contains("inconsistent page")
            || (line.contains("terminated by signal") && !line.contains("signal 9"))
    });
    ensure!(
        alarm.is_none(),
        "the server's log: {}",
        alarm.unwrap_or_default()
    );
    Ok(())
}
