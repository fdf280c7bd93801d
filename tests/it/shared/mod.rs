//! Two instances of the service on one Redis or Valkey.

mod durability;
mod instances;
mod outages;
mod upkeep;
