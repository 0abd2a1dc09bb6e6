//! What the machine or the pod gives the process: CPU time, file descriptors, and the sizes
//! that follow from them.

pub mod cgroup;
pub mod cpu;
pub mod keepalive;
pub mod nofile;
pub mod throttling;
