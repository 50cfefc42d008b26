//! Randomness, as an argument.

/// Draws random bytes.
pub trait Random: Send + Sync {
    /// Sixteen random bytes.
    fn draw(&self) -> [u8; 16];

    /// A random number.
    fn number(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.draw()[..8]);
        u64::from_le_bytes(bytes)
    }

    /// A random id in the form of a version 4 UUID.
    fn uuid(&self) -> String {
        uuid::Builder::from_random_bytes(self.draw()).into_uuid().to_string()
    }
}

/// The randomness of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRandom;

impl Random for SystemRandom {
    #[expect(clippy::disallowed_methods, reason = "this is where real randomness comes from")]
    fn draw(&self) -> [u8; 16] {
        uuid::Uuid::new_v4().into_bytes()
    }
}
