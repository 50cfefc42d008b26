//! The course of a history: what its seed draws before it begins. Each act draws what it does from a stream of its own,
//! so that the others stay as they are when one is left out.

use std::fmt;
use std::time::Duration;

use purlin::driver::scripted::Recovery;

use crate::faults::Weather;
use crate::outside::Moods;
use crate::random::Seeded;

/// What happens at one point of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// A user does something.
    User,
    /// An administrator does something that an administrator should not do.
    Administrator,
    /// A replica reaches nothing for a while.
    CutOff(Duration),
    /// A replica is stopped, and another one comes.
    Stop,
    /// A replica is killed, and another one comes after a while.
    Kill(Duration),
    /// Time passes.
    Wait(Duration),
}

/// One act.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Act {
    /// Its place among those that were drawn, from 1 on.
    pub(crate) number: u64,
    pub(crate) what: What,
}

impl Act {
    /// The stream from which it draws.
    pub(crate) fn random(self, seed: u64) -> Seeded {
        Seeded::of(seed, "act", self.number)
    }
}

/// All that is drawn from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(crate) seed: u64,
    /// Users and administrators do what they should not.
    pub(crate) is_wild: bool,
    pub(crate) replicas: u64,
    pub(crate) weather: Weather,
    pub(crate) moods: Moods,
    pub(crate) recovery: Recovery,
    pub(crate) acts: Vec<Act>,
}

impl Course {
    /// The course of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let random = &mut Seeded::new(seed, "history");
        let is_calm = random.chance(150);
        let steps = 3 + random.below(18);
        let is_wild = random.chance(600);
        let replicas = 1 + random.below(2);
        let strikes = if random.chance(600) { random.below(250) } else { 0 };
        let weather = if is_calm { Weather::default() } else { Weather::stormy(random) };
        let moods = if random.chance(300) { Moods::default() } else { Moods::bad(random) };
        let recovery = *random.pick(&[Recovery::Find, Recovery::Repeat]);
        let meddling = if is_wild && random.chance(300) { 150 } else { 0 };
        let mut acts = Vec::new();
        let mut add = |what| acts.push(Act { number: acts.len() as u64 + 1, what });
        for _ in 0..steps {
            if random.chance(800) {
                add(What::User);
            }
            if random.chance(meddling) {
                add(What::Administrator);
            }
            if random.chance(strikes) {
                add(match random.below(4) {
                    0 => What::CutOff(random.millis(1_000, 40_000)),
                    1 => What::Stop,
                    _ => What::Kill(random.millis(0, 20_000)),
                });
            }
            add(What::Wait(random.millis(0, 8_000)));
        }
        Self { seed, is_wild, replicas, weather, moods, recovery, acts }
    }

    /// A short one that still fails where this one does: acts are left out, as many at a time as possible, and then what
    /// the network and the service do wrong, one kind after the other.
    pub(crate) fn shortened(mut self, fails: impl Fn(&Self) -> bool) -> Self {
        let mut size = self.acts.len().div_ceil(2);
        while size > 0 {
            let mut from = 0;
            while from < self.acts.len() {
                let mut shorter = self.clone();
                shorter.acts.drain(from..(from + size).min(self.acts.len()));
                if fails(&shorter) {
                    self = shorter;
                } else {
                    from += size;
                }
            }
            size /= 2;
        }
        for number in 0..self.faults().len() {
            let mut calmer = self.clone();
            let mut faults = calmer.faults();
            if std::mem::take(faults[number].1) > 0 && fails(&calmer) {
                self = calmer;
            }
        }
        let alone = Self { replicas: 1, ..self.clone() };
        if fails(&alone) { alone } else { self }
    }

    /// Every fault, with how often in a thousand it happens.
    fn faults(&mut self) -> Vec<(&'static str, &mut u64)> {
        self.weather.faults().into_iter().chain(self.moods.faults()).collect()
    }
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut course = self.clone();
        let faults = course.faults().into_iter().filter(|(_, often)| **often > 0);
        let faults: Vec<String> = faults.map(|(name, often)| format!("{name} {often}")).collect();
        let acts: Vec<String> = self.acts.iter().map(|act| format!("{}:{:?}", act.number, act.what)).collect();
        let (seed, replicas, recovery) = (self.seed, self.replicas, self.recovery);
        writeln!(f, "seed {seed}, {replicas} replicas, {recovery:?}; faults in a thousand: {}", faults.join(", "))?;
        write!(f, "acts: {}", acts.join(" "))
    }
}
