//! Two instances of the service on one Redis or Valkey.

mod durability;
mod instances;
mod keys;
mod outages;
mod upkeep;
