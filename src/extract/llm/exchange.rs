//! What became of a request on its way: did it go over a connection that was kept, and did anything come back?
//!
//! A server may close an idle connection at the very moment at which the next request is sent over it. Such a request was
//! not answered badly, it was not answered at all, and is sent again over a new connection. The pool of the HTTP client
//! does not tell old connections from new ones, so both are noted here, for the thread that sends: it connects, sends and
//! waits by itself.

use std::cell::Cell;

use ureq::Error;
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, NextTimeout, Transport};

/// What a thread's present request has met so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Exchange {
    /// A connection was made for it.
    connected: bool,
    /// Some bytes came back.
    heard: bool,
}

thread_local! {
    static EXCHANGE: Cell<Exchange> = const { Cell::new(Exchange { connected: false, heard: false }) };
}

/// Before a request is sent.
pub(super) fn begin() {
    EXCHANGE.set(Exchange::default());
}

/// Whether the request that just failed went over a kept connection and nothing at all came back: the server had closed it.
pub(super) fn was_closed_before(error: &Error) -> bool {
    matches!(error, Error::Io(_)) && EXCHANGE.get() == Exchange::default()
}

/// Notes new connections, and what comes back over any.
#[derive(Debug)]
pub(super) struct Noting;

impl<In: Transport> Connector<In> for Noting {
    type Out = Noted<In>;

    fn connect(&self, _: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Noted<In>>, Error> {
        EXCHANGE.set(Exchange { connected: true, heard: false });
        Ok(chained.map(Noted))
    }
}

#[derive(Debug)]
pub(super) struct Noted<T>(T);

impl<T: Transport> Transport for Noted<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.0.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.0.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let came = self.0.await_input(timeout)?;
        if came {
            EXCHANGE.set(Exchange { heard: true, ..EXCHANGE.get() });
        }
        Ok(came)
    }

    fn is_open(&mut self) -> bool {
        self.0.is_open()
    }

    fn is_tls(&self) -> bool {
        self.0.is_tls()
    }
}
