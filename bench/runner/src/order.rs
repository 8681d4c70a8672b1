//! Who is visited when.

use stats_claw::resampling::schemes::permutation;
use stats_claw::rng::SplitMix64;

/// The order of one round among `contenders`: a shuffle, then the same backwards. A drift of the machine
/// that is linear over the round falls on each contender alike.
pub fn round(seed: u64, workload: usize, round: usize, contenders: usize) -> Vec<usize> {
    let mut rng = SplitMix64::new(seed ^ ((workload as u64) << 32) ^ round as u64);
    let mut order = permutation(contenders, &mut rng);
    let mirrored: Vec<usize> = order.iter().rev().copied().collect();
    order.extend(mirrored);
    order
}

#[cfg(test)]
mod tests {
    use super::round;

    #[test]
    fn the_second_half_mirrors_the_first() {
        let order = round(1, 0, 0, 5);
        let turned: Vec<usize> = order.iter().rev().copied().collect();
        assert_eq!(order, turned);
    }

    #[test]
    fn everyone_is_visited_twice_and_at_the_same_place_on_average() {
        for at in 0..20 {
            let order = round(9, 3, at, 7);
            for contender in 0..7 {
                let places: Vec<usize> =
                    (0..order.len()).filter(|&place| order[place] == contender).collect();
                assert_eq!(places.len(), 2);
                assert_eq!(places.iter().sum::<usize>(), order.len() - 1);
            }
        }
    }

    #[test]
    fn the_seed_decides_and_rounds_differ() {
        assert_eq!(round(1, 2, 3, 8), round(1, 2, 3, 8));
        assert_ne!(round(1, 2, 3, 8), round(2, 2, 3, 8));
        assert_ne!(round(1, 2, 3, 8), round(1, 2, 4, 8));
        assert_ne!(round(1, 2, 3, 8), round(1, 3, 3, 8));
    }
}
