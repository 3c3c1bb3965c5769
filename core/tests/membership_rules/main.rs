//! The membership coordinator against the tables of the reference design (§3, §4) and against the
//! improvements of the hardened profile. A line `// rule: <section>/<row>` stands above what covers
//! that row.

mod advertisements;
mod churn;
mod coverage;
mod diagnosis;
mod endpoints;
mod expectations;
mod generations;
mod generators;
mod incarnations;
mod limits;
mod mismatch;
mod model;
mod properties;
mod publication;
mod rebinding;
mod requirement;
mod rig;
mod statuses;
mod suspicion;
