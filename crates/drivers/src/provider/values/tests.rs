//! The schemas and random values of the tests of `tfprovider` and `cty`.

use cty::{Number, Type, Value};
use tfprovider::schema::{Attribute, Block, NestedBlock, Nesting, Shape};

#[path = "../../../../tfprovider/src/schema/builders.rs"]
pub mod builders;
#[path = "../../../../cty/src/tests.rs"]
pub mod strategies;
