//! A run, from nothing to the report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use mimus_bench_kit::{Job, Protocol};

use crate::analysis::{self, Analysis};
use crate::budget::{self, Budget, Budgets};
use crate::build::Layout;
use crate::cli::{BudgetArgs, Run};
use crate::client::{Client, Executable, Program};
use crate::counts::{Counters, Extent};
use crate::gate::Verdict;
use crate::machine::Machine;
use crate::pin::Pin;
use crate::progress::Progress;
use crate::record::{Built, Measured, Options, Record, Row};
use crate::rounds::{self, Entrant, Plan};
use crate::server::{self, Choice, Server};
use crate::suite::{Contender, Kind, Size, Suite, Workload};
use crate::{report, table};

/// The package of the bench's own server, and its binary.
const SERVER: (&str, &str) = ("server", "bench-server");
/// The package of the allocation counter, and its library.
const COUNTER: (&str, &str) = ("count", "libmimus_bench_count.so");
/// Exchanges of a counted block where nothing else is said; the counter sets its own.
const COUNTED_OPS: u64 = 1;

/// What is chosen to run.
struct Selection<'a> {
    workloads: Vec<(&'a Workload, Size)>,
    contenders: Vec<&'a Contender>,
}

/// What is built and runs.
struct Stage<'a> {
    suite: &'a Suite,
    options: Options,
    /// By client name.
    built: BTreeMap<String, Executable>,
    /// Who answers those that name nobody, first of all; then who is named by a workload, or why it is not there.
    server: Server,
    named: BTreeMap<Choice, Result<Server>>,
    counters: Counters,
}

/// `mimus-bench run`.
pub fn run(arguments: &Run) -> Result<ExitCode> {
    let layout = Layout::find()?;
    let suite = Suite::load(&layout.suite(&arguments.suite))?;
    let selection = select(&suite, arguments)?;
    let options = Options {
        quick: arguments.quick,
        pin: arguments.pin,
        server: arguments.server,
        runtime: arguments.runtime.clone(),
        seed: arguments.seed,
    };
    let mut record = Record::new(&arguments.suite, suite.clone(), options.clone(), Machine::here());
    let out =
        arguments.out.clone().unwrap_or_else(|| layout.out(&arguments.suite, &record.machine.date));
    std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;

    let scratch = tempfile::tempdir().context("there is no room for temporary files")?;
    let (built, failed) = build_clients(&layout, &suite, &selection.contenders);
    let start = |choice| start_server(&layout, choice, &options, &selection, scratch.path());
    let server = start(options.server)?;
    let named = selection.workloads.iter().filter_map(|(workload, _)| workload.server);
    let named: BTreeSet<Choice> = named.filter(|choice| *choice != options.server).collect();
    let named = named.into_iter().map(|choice| (choice, start(choice))).collect();
    let preload = if arguments.no_counts { None } else { build_counter(&layout) };
    let counters = Counters::find(preload, scratch.path());
    let stage = Stage { suite: &suite, options, built, server, named, counters };
    record.clients = stage.greet(&selection.contenders, failed);
    measure(&stage, &selection, &mut record, arguments.no_counts);

    record.save(&out.join("raw.json"))?;
    let found = report::write(&record, &out, arguments.png.as_deref())?;
    table::summary(&found);
    table::say(&format!("\n{}", out.join("report.html").display()));
    let budgets = if arguments.budget { hold(&layout, &record)? } else { ExitCode::SUCCESS };
    let passed = is_sound(&found) && (!arguments.require_gates || all_passed(&found));
    Ok(if passed { budgets } else { ExitCode::FAILURE })
}

/// `mimus-bench budget`.
pub fn budget(arguments: &BudgetArgs) -> Result<ExitCode> {
    let layout = Layout::find()?;
    let mut found = Vec::new();
    for name in &arguments.suite {
        let suite = Suite::load(&layout.suite(name))?;
        found.extend(count_budgets(&layout, &suite).with_context(|| format!("suite {name}"))?);
    }
    let path = layout.budgets();
    let mut budgets = Budgets::load(&path)?;
    if arguments.update {
        budgets.update(found.clone());
        budgets.save(&path)?;
    }
    Ok(budget::report(&budgets.compare(&found)))
}

/// What exchanges of ours take in the workloads of `suite` that have a budget.
fn count_budgets(layout: &Layout, suite: &Suite) -> Result<Vec<Budget>> {
    let ours = |c: &&Contender| suite.kind(&c.id()) == Some(Kind::Ours);
    let contenders: Vec<&Contender> = suite.contenders.iter().filter(ours).collect();
    let scratch = tempfile::tempdir()?;
    let (built, failed) = build_clients(layout, suite, &contenders);
    if let Some((client, why)) = failed.iter().next() {
        bail!("{client} could not be built: {why}");
    }
    let options = Options {
        quick: true,
        pin: Pin::None,
        server: Choice::Minimal,
        runtime: "current".into(),
        seed: 0,
    };
    let selection = Selection { workloads: Vec::new(), contenders: Vec::new() };
    let server = start_server(layout, options.server, &options, &selection, scratch.path())?;
    let counters = Counters::find(build_counter(layout), scratch.path());
    let named = BTreeMap::new();
    let stage = Stage { suite, options, built, server, named, counters };
    stage.count_budgets(&contenders)
}

fn select<'a>(suite: &'a Suite, arguments: &Run) -> Result<Selection<'a>> {
    for id in &arguments.only {
        ensure!(suite.workloads.iter().any(|w| w.id == *id), "there is no workload {id}");
    }
    for name in &arguments.peers {
        let known = suite.contenders.iter().any(|c| c.client == *name || c.id() == *name);
        ensure!(known, "there is no peer {name}");
    }
    let workloads: Vec<(&Workload, Size)> = suite
        .workloads
        .iter()
        .filter(|w| server::path_on(w.server.unwrap_or(arguments.server), w).is_some())
        .filter_map(|w| {
            // Who asks for one workload by name gets it in a quick run too.
            let named = arguments.only.contains(&w.id);
            let size = w.size(arguments.quick).or(named.then_some(w.full))?;
            (named || arguments.only.is_empty()).then_some((w, size))
        })
        .collect();
    ensure!(!workloads.is_empty(), "no workload is left to run");
    let wanted = |c: &&Contender| {
        let peer = suite.kind(&c.id()) == Some(Kind::Peer);
        let named = arguments.peers.iter().any(|name| *name == c.client || *name == c.id());
        let chosen =
            !peer || named || (arguments.peers.is_empty() && (c.quick || !arguments.quick));
        chosen && workloads.iter().any(|(workload, _)| workload.is_for(c))
    };
    let contenders = suite.contenders.iter().filter(wanted).collect();
    Ok(Selection { workloads, contenders })
}

/// Builds each contender's client once: what to run by name, and the errors of those that fail.
fn build_clients(
    layout: &Layout,
    suite: &Suite,
    contenders: &[&Contender],
) -> (BTreeMap<String, Executable>, BTreeMap<String, String>) {
    let is_used = |name: &str| contenders.iter().any(|contender| contender.client == name);
    let clients: Vec<_> = suite.clients.iter().filter(|client| is_used(&client.name)).collect();
    let progress = Progress::new("build", clients.len() as u64);
    let (mut built, mut failed) = (BTreeMap::new(), BTreeMap::new());
    for client in clients {
        progress.step(&client.name);
        match layout.client(client, &progress) {
            Ok(executable) => {
                built.insert(client.name.clone(), executable);
            }
            Err(why) => {
                progress.say(&format!("{} could not be built: {why:#}", client.name));
                failed.insert(client.name.clone(), format!("{why:#}"));
            }
        }
        progress.done(1);
    }
    (built, failed)
}

fn build_counter(layout: &Layout) -> Option<PathBuf> {
    let progress = Progress::new("build", 1);
    progress.step("the allocation counter");
    match layout.build(COUNTER.0, COUNTER.1, &progress) {
        Ok(path) => Some(path),
        Err(why) => {
            progress.say(&format!("{why:#}"));
            None
        }
    }
}

fn start_server(
    layout: &Layout,
    choice: Choice,
    options: &Options,
    selection: &Selection<'_>,
    scratch: &Path,
) -> Result<Server> {
    let core = options.pin.server();
    match choice {
        Choice::Minimal => {
            let progress = Progress::new("build", 1);
            progress.step("the server");
            let binary = layout.build(SERVER.0, SERVER.1, &progress)?;
            Server::minimal(&binary, core, scratch)
        }
        Choice::Nginx => {
            let workloads: Vec<&Workload> = selection.workloads.iter().map(|(w, _)| *w).collect();
            Server::nginx(core, scratch, &workloads)
        }
        Choice::Httpbin => Server::httpbin(core),
    }
}

impl Stage<'_> {
    fn program(&self, contender: &Contender, protocol: Protocol) -> Option<Program> {
        Some(Program {
            executable: self.built.get(&contender.client)?.clone(),
            config: contender.config.clone(),
            // A client for who has no certificate does not miss this one.
            ca: self.server.ca.clone(),
            protocol,
            runtime: self.options.runtime.clone(),
            ours: self.suite.kind(&contender.id()) == Some(Kind::Ours),
        })
    }

    /// Asks each client what it is.
    fn greet(
        &self,
        contenders: &[&Contender],
        failed: BTreeMap<String, String>,
    ) -> BTreeMap<String, Built> {
        let fail = |(name, error)| (name, Built::Failed { error });
        let mut built: BTreeMap<String, Built> = failed.into_iter().map(fail).collect();
        for contender in contenders {
            let spoken = |w: &&Workload| w.is_for(contender);
            let protocol =
                self.suite.workloads.iter().find(spoken).map(|w| contender.protocol_in(w));
            let program = self.program(contender, protocol.unwrap_or_default());
            let Some(program) = program else { continue };
            // One that does not even greet fails each of its rows, with the reason.
            let Ok(client) = Client::start(&program, None) else { continue };
            let entry = built.entry(contender.client.clone()).or_insert_with(|| Built::Ready {
                version: client.hello.version.clone(),
                about: BTreeMap::new(),
            });
            if let Built::Ready { about, .. } = entry {
                about.insert(contender.config.clone(), client.hello.about.clone());
            }
        }
        built
    }

    /// Who answers `workload`, or why nobody does.
    fn server(&self, workload: &Workload) -> Result<&Server, String> {
        match workload.server.and_then(|named| self.named.get(&named)) {
            None => Ok(&self.server),
            Some(Ok(server)) => Ok(server),
            Some(Err(why)) => Err(format!("{why:#}")),
        }
    }

    /// Measures one workload; `began` is where the bar stands.
    fn workload(
        &self,
        place: usize,
        (workload, size): (&Workload, Size),
        contenders: &[&Contender],
        progress: &Progress,
        began: u64,
    ) -> Option<Measured> {
        let mut rows = Vec::new();
        let mut entrants = Vec::new();
        let contenders = contenders.iter().filter(|contender| workload.is_for(contender));
        let server = match self.server(workload) {
            Ok(server) => server,
            Err(why) => {
                rows.extend(contenders.map(|contender| Row::failed(contender.id(), &why)));
                let job = workload.job(String::new(), size.ops);
                return Some(Measured { id: workload.id.clone(), job, rows });
            }
        };
        let job = workload.job(server.url(workload, workload.protocol)?, size.ops);
        for contender in contenders {
            match self.program(contender, contender.protocol_in(workload)) {
                Some(program) => {
                    let url = server.url(workload, program.protocol)?;
                    entrants.push(Entrant::start(contender.id(), &program, url, self.options.pin));
                }
                None => rows.push(Row::new(contender.id())),
            }
        }
        let plan = Plan {
            seed: self.options.seed,
            workload: place,
            seconds: size.seconds,
            min_rounds: workload.min_rounds,
        };
        rounds::run(&mut entrants, &job, plan, progress, began);
        rows.extend(entrants.into_iter().map(|entrant| entrant.row));
        Some(Measured { id: workload.id.clone(), job, rows })
    }

    /// Counts for the rows of `measured` that the workload wants counted.
    fn count(&self, workload: &Workload, measured: &mut Measured, progress: &Progress) {
        for row in measured.rows.iter_mut().filter(|row| row.is_sound()) {
            let Some(contender) = self.suite.contender(&row.contender) else { continue };
            let ours = self.suite.kind(&row.contender) == Some(Kind::Ours);
            let Some(extent) = workload.counted(contender, ours) else { continue };
            let program = self.program(contender, contender.protocol_in(workload));
            let Some(program) = program else { continue };
            progress.detail(&format!("counting {} of {}", workload.id, row.contender));
            let Ok(server) = self.server(workload) else { continue };
            let Some(url) = server.url(workload, program.protocol) else { continue };
            let job = Job { url, ..measured.job.clone() };
            let (counts, troubles) = self.counters.count(&program, &job, extent);
            row.counts = counts;
            for trouble in troubles {
                progress.say(&format!("{} of {}: {trouble}", workload.id, row.contender));
            }
        }
    }

    fn count_budgets(&self, contenders: &[&Contender]) -> Result<Vec<Budget>> {
        if let Some(missing) = self.counters.missing().first() {
            bail!("{missing}");
        }
        let workloads: Vec<&Workload> = self.suite.workloads.iter().filter(|w| w.budget).collect();
        let progress = Progress::new("count", (workloads.len() * contenders.len()) as u64);
        let mut found = Vec::new();
        for workload in workloads {
            let url = self
                .server
                .url(workload, workload.protocol)
                .context("the server does not serve it")?;
            let job = workload.job(url, COUNTED_OPS);
            for contender in contenders.iter().filter(|contender| workload.is_for(contender)) {
                let program = self.program(contender, contender.protocol_in(workload));
                let program = program.context("it is not built")?;
                progress.step(&format!("{} of {}", workload.id, contender.id()));
                let (counts, troubles) = self.counters.count(&program, &job, Extent::All);
                for trouble in troubles {
                    progress.say(&trouble);
                }
                found.push(Budget {
                    workload: workload.id.clone(),
                    contender: contender.id(),
                    counts,
                });
                progress.done(1);
            }
        }
        Ok(found)
    }
}

fn measure(stage: &Stage<'_>, selection: &Selection<'_>, record: &mut Record, no_counts: bool) {
    let seconds: f64 = selection.workloads.iter().map(|(_, size)| size.seconds).sum();
    let progress = Progress::new("measure", seconds as u64);
    if !no_counts {
        for missing in stage.counters.missing() {
            progress.say(missing);
        }
    }
    let mut spent = 0.0;
    for (place, &(workload, size)) in selection.workloads.iter().enumerate() {
        progress.step(&workload.title);
        let chosen = (workload, size);
        let began = spent as u64;
        if let Some(mut measured) =
            stage.workload(place, chosen, &selection.contenders, &progress, began)
        {
            if !no_counts {
                stage.count(workload, &mut measured, &progress);
            }
            record.workloads.push(measured);
        }
        spent += size.seconds;
        progress.at(spent as u64);
    }
}

/// Holds the counts of this run to the budgets.
fn hold(layout: &Layout, record: &Record) -> Result<ExitCode> {
    let mut found = Vec::new();
    for measured in &record.workloads {
        let budgeted = record.suite.workloads.iter().any(|w| w.id == measured.id && w.budget);
        let ours = |row: &&Row| record.suite.kind(&row.contender) == Some(Kind::Ours);
        found.extend(measured.rows.iter().filter(|_| budgeted).filter(ours).map(|row| Budget {
            workload: measured.id.clone(),
            contender: row.contender.clone(),
            counts: row.counts,
        }));
    }
    Ok(budget::report(&Budgets::load(&layout.budgets())?.compare(&found)))
}

/// Whether no row of ours or of a floor failed: without them a run says nothing.
fn is_sound(found: &Analysis) -> bool {
    let mut rows = found.workloads.iter().flat_map(|workload| &workload.rows);
    !rows.any(|row| {
        row.kind != Kind::Peer
            && matches!(row.state, analysis::State::Failed(_) | analysis::State::NotBuilt(_))
    })
}

/// Whether there were gates, and every one of them was judged and passed.
fn all_passed(found: &Analysis) -> bool {
    let mut gates = found.gates.iter();
    !found.gates.is_empty() && gates.all(|gate| matches!(gate.verdict, Verdict::Pass(_)))
}
