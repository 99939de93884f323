//! Roles that are not superusers.
use super::Outcome;
use super::table::value;
use anyhow::Result;
use neardup_tests::{Database, connect};
use postgres::Client;
use std::sync::atomic::{AtomicU32, Ordering};

/// A role that can log in. Dropping the value drops the role and its objects in the database.
pub struct Role<'a> {
    /// The name, which needs no quotes.
    pub name: String,
    database: &'a Database,
}

impl<'a> Role<'a> {
    /// Makes a role.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn create(database: &'a Database) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plain_{}_{number}", std::process::id());
        database
            .connect()?
            .batch_execute(&format!("CREATE ROLE {name} LOGIN"))?;
        Ok(Role { name, database })
    }

    /// Returns the connection settings of the role in a database.
    pub fn conninfo(&self, database: &Database) -> String {
        format!("{} user={}", database.conninfo(), self.name)
    }

    /// Opens a connection of the role.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn connect(&self) -> Result<Client> {
        connect(&self.conninfo(self.database))
    }

    /// Makes the role the owner of a database.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn take_over(&self, database: &Database) -> Outcome {
        let mut client = database.connect()?;
        let name: String = value(&mut client, "SELECT current_database()::text")?;
        client.batch_execute(&format!("ALTER DATABASE {name} OWNER TO {}", self.name))?;
        Ok(())
    }
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        // Ignores errors, as dropping a database does.
        if let Ok(mut client) = self.database.connect() {
            let name = &self.name;
            client
                .batch_execute(&format!(
                    "REASSIGN OWNED BY {name} TO CURRENT_USER; DROP OWNED BY {name}; \
                     DROP ROLE {name}"
                ))
                .ok();
        }
    }
}
