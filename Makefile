# Builds and installs with cargo, in the way of other extensions: for PGXN's client, and for
# packages of distributions. `cargo xtask` has the commands for development.
#
#   make PG_CONFIG=/path/to/bin/pg_config
#   make install PG_CONFIG=/path/to/bin/pg_config DESTDIR=/tmp/stage
#   make installcheck PG_CONFIG=/path/to/bin/pg_config   # on the server of PGHOST and PGPORT

PG_CONFIG ?= pg_config
CARGO ?= cargo
INSTALL ?= install
DESTDIR ?=

# `make clean` needs no server.
ifneq ($(MAKECMDGOALS),clean)
# The build of the bindings wants a full path.
pg_config := $(shell command -v $(PG_CONFIG))
ifeq ($(pg_config),)
$(error there is no $(PG_CONFIG): name the server's with PG_CONFIG=/path/to/bin/pg_config)
endif
major := $(shell $(pg_config) --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
ifeq ($(filter 15 16 17 18,$(major)),)
$(error neardup supports PostgreSQL 15 to 18, and $(pg_config) is of $(major): set PG_CONFIG)
endif
extension_dir := $(DESTDIR)$(shell $(pg_config) --sharedir)/extension
library_dir := $(DESTDIR)$(shell $(pg_config) --pkglibdir)
bindir := $(shell $(pg_config) --bindir)
headers := $(shell $(pg_config) --includedir-server)
endif

target := $(or $(CARGO_TARGET_DIR),target)
cargo_home := $(or $(CARGO_HOME),$(HOME)/.cargo)
# On macOS cargo makes a .dylib, and servers from 16 on look for one.
ifeq ($(shell uname -s),Darwin)
built := dylib
suffix := $(if $(filter 15,$(major)),so,dylib)
else
built := so
suffix := so
endif
library := $(target)/release/libneardup.$(built)

# The library does not contain the names of this machine's folders.
# Packages may have the target folder elsewhere. The compiler applies the last match.
flags := --remap-path-prefix=$(cargo_home)=/cargo --remap-path-prefix=$(CURDIR)=/neardup \
    --remap-path-prefix=$(abspath $(target))=/target
# RUSTFLAGS replaces the flags in .cargo/config.toml, so the flag for musl is repeated here. Other
# systems have this setting by default.
flags += -C target-feature=-crt-static
# C code in the bindings names the server's headers.
c_flags := -ffile-prefix-map=$(headers)=/postgresql

all:
	RUSTFLAGS="$(RUSTFLAGS) $(flags)" CFLAGS="$(CFLAGS) $(c_flags)" \
	    PGRX_PG_CONFIG_PATH="$(pg_config)" $(CARGO) build --locked --release --package neardup \
	    --no-default-features --features pg$(major) --target-dir "$(target)"

# It builds nothing: the user who installs may have no Rust.
install:
	@test -f "$(library)" || { echo "there is no $(library): run make first" >&2; exit 1; }
	$(INSTALL) -d "$(extension_dir)" "$(library_dir)"
	$(INSTALL) -m 644 neardup.control sql/neardup--*.sql "$(extension_dir)"
	$(INSTALL) -m 755 "$(library)" "$(library_dir)/neardup.$(suffix)"

uninstall:
	rm -f "$(library_dir)/neardup.$(suffix)" "$(extension_dir)/neardup.control" \
	    "$(extension_dir)"/neardup--*.sql

# Creates a database, uses the installed extension there, and drops the database.
check := neardup_installcheck
installcheck:
	"$(bindir)/createdb" $(check)
	"$(bindir)/psql" --no-psqlrc --quiet --dbname=$(check) --file=xtask/src/package/try.sql; \
	    status=$$?; "$(bindir)/dropdb" $(check) && exit $$status

# The folder also has the servers and data of `cargo xtask psql`, which stay.
clean:
	$(CARGO) clean --release --target-dir "$(target)"

.PHONY: all install installcheck uninstall clean
