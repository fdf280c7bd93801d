//! What an operator looks for, under a name that tells nothing: so no search stands in an address.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Operator;
use crate::domain::OperatorId;
use crate::flow::search::Filter;
use crate::flow::visit::Visit;
use crate::flow::withdraw::KeptFilter;
use crate::flow::{Error, Gate};

/// How long a search can be gone back to.
const REMEMBERED: Duration = Duration::from_hours(1);

/// What an operator looks for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Query {
    /// Links.
    Links(Filter),
    /// What is kept.
    Kept(KeptFilter),
}

#[derive(Serialize, Deserialize)]
struct Asked {
    by: OperatorId,
    query: Query,
}

impl Visit for Asked {
    const KIND: &'static str = "query";
}

impl Gate {
    /// Remembers what an operator looks for. Returns its name.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn remember_query(&self, operator: &Operator, query: Query) -> Result<String, Error> {
        let name = self.fresh_name();
        self.remember(&name, &Asked { by: operator.id.clone(), query }, REMEMBERED).await?;
        Ok(name)
    }

    /// What this operator looked for under that name.
    ///
    /// # Errors
    /// [`Error::NotFound`] also if it was another operator, [`Error::Unavailable`].
    pub async fn query(&self, operator: &Operator, name: &str) -> Result<Query, Error> {
        let asked = self.recall::<Asked>(name).await?;
        let own = asked.filter(|asked| asked.by == operator.id);
        own.map(|asked| asked.query).ok_or(Error::NotFound)
    }
}
