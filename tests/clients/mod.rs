//! Programs that use the extension: drivers, applications, the package for Python, the documents.
mod applications;
pub mod documents;
mod drivers;
pub mod examples;
mod report;
mod rust;
mod wheel;
mod without_extension;
