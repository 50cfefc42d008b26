//! How the work is divided: shards are ranges of the buckets of namespaces, and each replica takes its fair share of them.
//! Decides only; `elector` reads and writes the Leases.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use model::{BUCKETS, bucket};

/// A part of the work of a cluster, which one replica does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shard {
    /// The namespaces of a range of buckets.
    Namespaces(u16),
    /// What exists once in a cluster, such as the status of Providers.
    Cluster,
}

impl fmt::Display for Shard {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Namespaces(number) => write!(to, "{number}"),
            Self::Cluster => to.write_str("cluster"),
        }
    }
}

impl FromStr for Shard {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "cluster" { Ok(Self::Cluster) } else { text.parse().map(Self::Namespaces) }
    }
}

/// The division of all namespaces into shards. All replicas of an installation must have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    count: u16,
}

impl Division {
    /// `count`: the number of shards, from 1 to [`BUCKETS`]. Other numbers count as the nearest one.
    pub fn new(count: u16) -> Self {
        Self { count: count.clamp(1, BUCKETS) }
    }

    /// The number of shards, without that of the cluster.
    pub fn count(self) -> u16 {
        self.count
    }

    pub fn shard(self, namespace: &str) -> Shard {
        self.shard_of_bucket(bucket(namespace))
    }

    pub fn shard_of_bucket(self, bucket: u16) -> Shard {
        Shard::Namespaces(bucket * self.count / BUCKETS)
    }

    /// All shards, with that of the cluster.
    pub fn all(self) -> impl Iterator<Item = Shard> {
        (0..self.count).map(Shard::Namespaces).chain([Shard::Cluster])
    }
}

/// What a replica should do for a fair distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Shards without a holder, for this replica.
    pub take: BTreeSet<Shard>,
    /// Shards of this replica that others should have.
    pub give_back: BTreeSet<Shard>,
}

/// Who holds what.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// The replicas that take shards. One that shuts down is not among them.
    pub replicas: BTreeSet<String>,
    /// The holder of each shard, if it is alive.
    pub holders: BTreeMap<Shard, String>,
}

impl Distribution {
    /// The moves of a replica. All replicas with the same view arrive at matching moves: a free shard goes to the one with
    /// the fewest shards, and none has more than one shard more than another in the end. `cost`: how much it costs this
    /// replica to give a shard back; it gives back the cheapest ones.
    pub fn moves(&self, division: Division, me: &str, cost: impl Fn(Shard) -> usize) -> Moves {
        let mut loads: BTreeMap<&str, usize> = self.replicas.iter().map(|name| (name.as_str(), 0)).collect();
        if !loads.contains_key(me) {
            return Moves::default();
        }
        for holder in self.holders.values() {
            if let Some(load) = loads.get_mut(holder.as_str()) {
                *load += 1;
            }
        }
        let (mut moves, mut any_free) = (Moves::default(), false);
        for shard in division.all().filter(|shard| !self.holders.contains_key(shard)) {
            any_free = true;
            let Some((name, load)) = loads.iter_mut().min_by_key(|(name, load)| (**load, **name)) else { break };
            *load += 1;
            if *name == me {
                moves.take.insert(shard);
            }
        }
        if !any_free {
            let mut mine: Vec<Shard> =
                self.holders.iter().filter(|(_, holder)| *holder == me).map(|(shard, _)| *shard).collect();
            let surplus = mine.len().saturating_sub(fair_share(&loads, me));
            mine.sort_by_key(|shard| (cost(*shard), *shard));
            moves.give_back.extend(mine.into_iter().take(surplus));
        }
        moves
    }
}

/// How many of the distributed shards a replica should have. If they cannot be distributed evenly, those that have the
/// most keep one more.
fn fair_share(loads: &BTreeMap<&str, usize>, me: &str) -> usize {
    let total: usize = loads.values().sum();
    let mut most_first: Vec<(&str, usize)> = loads.iter().map(|(name, load)| (*name, *load)).collect();
    most_first.sort_by_key(|(name, load)| (std::cmp::Reverse(*load), *name));
    let place = most_first.iter().position(|(name, _)| *name == me).unwrap_or(usize::MAX);
    total / loads.len().max(1) + usize::from(place < total % loads.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIXTEEN: Division = Division { count: 16 };

    fn distribution(replicas: &[&str], held: &[(&str, usize)]) -> Distribution {
        let mut shards = SIXTEEN.all();
        let holders = held
            .iter()
            .flat_map(|(name, count)| shards.by_ref().take(*count).map(|shard| (shard, *name)).collect::<Vec<_>>());
        let holders = holders.map(|(shard, name)| (shard, name.to_owned())).collect();
        Distribution { replicas: replicas.iter().map(|name| (*name).to_owned()).collect(), holders }
    }

    /// Plays attempts of all replicas, one after the other, until nothing moves, and returns how many shards each has.
    fn play(mut all: Distribution) -> Vec<(String, usize)> {
        for _ in 0..100 {
            let before = all.holders.clone();
            for me in all.replicas.clone() {
                let moves = all.moves(SIXTEEN, &me, |_| 0);
                moves.give_back.iter().for_each(|shard| drop(all.holders.remove(shard)));
                all.holders.extend(moves.take.into_iter().map(|shard| (shard, me.clone())));
            }
            if all.holders == before {
                let count = |name: &String| all.holders.values().filter(|holder| *holder == name).count();
                return all.replicas.iter().map(|name| (name.clone(), count(name))).collect();
            }
        }
        panic!("the shards move forever: {all:?}");
    }

    fn counts(replicas: &[&str], held: &[(&str, usize)]) -> Vec<usize> {
        play(distribution(replicas, held)).into_iter().map(|(_, count)| count).collect()
    }

    #[test]
    fn shards_are_ranges_of_buckets_of_nearly_the_same_size() {
        for count in [1, 3, 10, 16, 64] {
            let division = Division::new(count);
            let mut sizes = BTreeMap::new();
            (0..BUCKETS).for_each(|bucket| *sizes.entry(division.shard_of_bucket(bucket)).or_insert(0) += 1);
            assert_eq!(sizes.len(), usize::from(count));
            assert!(sizes.values().max().unwrap() - sizes.values().min().unwrap() <= 1, "{sizes:?}");
        }
        assert_eq!((Division::new(0).count(), Division::new(1000).count()), (1, BUCKETS));
        assert_eq!(SIXTEEN.all().count(), 17);
    }

    #[test]
    fn the_name_of_a_shard_can_be_read() {
        for shard in SIXTEEN.all() {
            assert_eq!(shard.to_string().parse(), Ok(shard));
        }
        assert!("x".parse::<Shard>().is_err());
    }

    #[test]
    fn a_single_replica_takes_everything() {
        assert_eq!(counts(&["a"], &[]), [17]);
    }

    #[test]
    fn a_new_replica_gets_its_share() {
        assert_eq!(counts(&["a", "b"], &[("a", 17)]), [9, 8]);
        assert_eq!(counts(&["a", "b", "c"], &[("a", 9), ("b", 8)]), [6, 6, 5]);
        assert_eq!(counts(&["a", "b", "c"], &[("c", 17)]).iter().max(), Some(&6));
    }

    #[test]
    fn the_shards_of_a_dead_replica_are_spread() {
        assert_eq!(counts(&["a", "b"], &[("a", 6), ("b", 6)]), [9, 8]);
    }

    #[test]
    fn a_fair_distribution_does_not_change() {
        for held in [[("a", 6), ("b", 6), ("c", 5)], [("a", 5), ("b", 6), ("c", 6)]] {
            let all = distribution(&["a", "b", "c"], &held);
            for me in ["a", "b", "c"] {
                assert_eq!(all.moves(SIXTEEN, me, |_| 0), Moves::default());
            }
        }
    }

    #[test]
    fn replicas_with_the_same_view_take_different_shards() {
        let all = distribution(&["a", "b", "c"], &[("a", 6)]);
        let take = |me| all.moves(SIXTEEN, me, |_| 0).take;
        let (a, b, c) = (take("a"), take("b"), take("c"));
        assert_eq!((a.len(), b.len(), c.len()), (0, 6, 5));
        assert!(b.is_disjoint(&c));
    }

    #[test]
    fn more_replicas_than_shards_leave_some_without_one() {
        let names: Vec<String> = (0..20).map(|number| format!("r{number:02}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = counts(&names, &[("r00", 17)]);
        assert_eq!((found.iter().sum::<usize>(), found.iter().max()), (17, Some(&1)));
    }

    #[test]
    fn a_replica_that_shuts_down_takes_nothing_and_keeps_what_it_has() {
        let all = distribution(&["b"], &[("a", 17)]);
        assert_eq!(all.moves(SIXTEEN, "a", |_| 0), Moves::default());
        assert_eq!(all.moves(SIXTEEN, "b", |_| 0), Moves::default());
    }

    #[test]
    fn the_cheapest_shards_are_given_back() {
        let all = distribution(&["a", "b"], &[("a", 17)]);
        let busy = Shard::Namespaces(3);
        let moves = all.moves(SIXTEEN, "a", |shard| usize::from(shard == busy));
        assert_eq!((moves.give_back.len(), moves.give_back.contains(&busy)), (8, false));
    }
}
