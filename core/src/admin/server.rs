//! The thread that accepts and serves the connections.

use super::endpoints::{App, SCRAPES};
use super::{Operations, Role, Settings, connection};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, oneshot};

/// A bound address: connections wait in the kernel until [`Server::start`].
#[derive(Debug)]
pub struct Listener {
    role: Role,
    address: SocketAddr,
    socket: std::net::TcpListener,
}

impl Listener {
    /// Binds `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// What `bind` says: mostly that the address is in use or isn't of this host.
    pub fn bind(role: Role, address: SocketAddr) -> io::Result<Self> {
        Self::inherited(role, std::net::TcpListener::bind(address)?)
    }

    /// Takes over a socket that listens already.
    ///
    /// # Errors
    /// When it is no such socket.
    pub fn inherited(role: Role, socket: std::net::TcpListener) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            role,
            address: socket.local_addr()?,
            socket,
        })
    }

    /// The address with the port in use.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Which endpoints it has.
    pub fn role(&self) -> Role {
        self.role
    }

    /// The socket.
    pub fn socket(&self) -> &std::net::TcpListener {
        &self.socket
    }
}

/// The running listeners. Dropping it closes them and cuts what is being answered; a reload that is
/// running goes on to its end.
#[derive(Debug)]
pub struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// For handing them over.
    listeners: Vec<Listener>,
}

impl Server {
    /// Starts serving `listeners` on a thread named `admin`.
    ///
    /// # Errors
    /// When the thread or its event queue can't be had (file descriptors, threads).
    pub fn start(
        listeners: Vec<Listener>,
        operations: Arc<dyn Operations>,
        settings: Settings,
    ) -> io::Result<Self> {
        // What may block on each listener at a time: the scrapes and one reload.
        let blocking = listeners.len().max(1) * (SCRAPES + 1);
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(blocking)
            .thread_name("admin-task")
            .build()?;
        for listener in &listeners {
            let socket = {
                let _context = runtime.enter();
                TcpListener::from_std(listener.socket.try_clone()?)?
            };
            let loopback = listener.address.ip().to_canonical().is_loopback();
            let app = App::new(operations.clone(), listener.role, loopback, settings);
            runtime.spawn(accept(socket, Arc::new(app), settings.connections));
        }
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("admin".to_owned())
            .spawn(move || run(runtime, stopped))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
            listeners,
        })
    }

    /// What it listens on.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("admin: the listeners' thread panicked");
        }
    }
}

fn run(runtime: Runtime, stopped: oneshot::Receiver<()>) {
    // Both a message and a dropped sender mean stop.
    let _ = runtime.block_on(stopped);
    runtime.shutdown_background();
}

async fn accept(socket: TcpListener, app: Arc<App>, connections: usize) {
    let slots = Arc::new(Semaphore::new(connections.max(1)));
    loop {
        // The semaphore is never closed, so this only ever waits.
        let Ok(slot) = slots.clone().acquire_owned().await else {
            return;
        };
        match socket.accept().await {
            Ok((client, _)) => {
                let app = app.clone();
                tokio::spawn(async move {
                    connection::serve(client, &app).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!("admin: accept failed: {error}");
                // Out of file descriptors, most likely, and then it fails again at once.
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        }
    }
}
