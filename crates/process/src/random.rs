//! An injectable source of random values.

pub trait Random: Send + Sync {
    fn bytes(&self) -> [u8; 16];

    fn number(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.bytes()[..8]);
        u64::from_le_bytes(bytes)
    }

    /// Returns a random version 4 UUID.
    fn uuid(&self) -> String {
        uuid::Builder::from_random_bytes(self.bytes()).into_uuid().to_string()
    }
}

/// The random source of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    #[expect(clippy::disallowed_methods, reason = "the only place that generates random values")]
    fn bytes(&self) -> [u8; 16] {
        uuid::Uuid::new_v4().into_bytes()
    }
}
