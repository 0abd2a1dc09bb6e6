mod registered;
mod tables;
