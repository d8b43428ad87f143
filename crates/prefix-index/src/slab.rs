//! Numbered places that stay where they are.

use std::ops::{Index, IndexMut};

/// Values per chunk. A slab grows by one chunk, so growing copies nothing and doubles no memory, however many values
/// there are.
const CHUNK: usize = 1024;

/// Values with numbers. A number is given again after its value was taken.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
}

impl<T: Default> Slab<T> {
    pub(crate) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Puts a value into a free place and returns its number.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self[number] = value;
            return number;
        }
        // 2³² values of any use do not fit into memory.
        let number = self.places() as u32;
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(value),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(value);
                self.chunks.push(chunk);
            }
        }
        number
    }

    /// Takes a value out; its place is free from then on.
    pub(crate) fn remove(&mut self, number: u32) -> T {
        self.free.push(number);
        std::mem::take(&mut self[number])
    }

    /// What is in a place, if there is such a place.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let chunk = self.chunks.get(number as usize / CHUNK)?;
        chunk.get(number as usize % CHUNK)
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.places() - self.free.len()
    }

    /// All places with their numbers, free ones (which hold the default value) included.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(self.chunks.iter().flatten())
    }

    /// Number of places, used and free.
    pub(crate) fn places(&self) -> usize {
        self.chunks
            .last()
            .map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }
}
