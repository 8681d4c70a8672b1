//! What stands for compression where the feature `ws-deflate` is off: types without a value.

use crate::Error;

#[derive(Debug)]
pub(super) enum Inflate {}

impl Inflate {
    pub(super) fn take(
        &mut self,
        _input: &[u8],
        _ends: bool,
        _out: &mut Vec<u8>,
        _limit: usize,
    ) -> Result<(), Error> {
        match *self {}
    }
}

#[derive(Debug)]
pub(super) enum Deflate {}

impl Deflate {
    pub(super) fn is_on(&self) -> bool {
        match *self {}
    }

    pub(super) fn whole(&mut self, _message: &[u8]) -> Option<&[u8]> {
        match *self {}
    }

    pub(super) fn piece(&mut self, _piece: &[u8], _last: bool) -> &[u8] {
        match *self {}
    }

    pub(super) fn shrink(&mut self) {
        match *self {}
    }
}
