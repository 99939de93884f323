//! Programs that use the extension: drivers, applications, the package for Python, the documents.
mod applications;
pub mod documents;
mod drivers;
pub mod examples;
mod images;
mod reference;
mod report;
mod rust;
mod wheel;
mod without_extension;
